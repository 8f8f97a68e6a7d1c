"""The dashboard of ``recrawl serve``: pages for people, the same facts as JSON, and a document that describes both."""
