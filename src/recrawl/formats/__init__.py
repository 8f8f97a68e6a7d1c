"""Files that others read and write, to and from captures and visits."""
