"""Arrow and Parquet tables."""
