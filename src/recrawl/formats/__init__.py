"""File formats of the field: read and written as captures and visits."""
