"""Quality of an archive that anybody made."""
