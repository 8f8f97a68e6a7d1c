"""How the store talks to a database: engines, SQL statements, and the store over both."""
