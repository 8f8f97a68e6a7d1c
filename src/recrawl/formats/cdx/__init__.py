"""CDX, CDXJ and ZipNum indexes."""
