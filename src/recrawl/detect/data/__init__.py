"""JSON, CSV and RDF in canonical form."""
