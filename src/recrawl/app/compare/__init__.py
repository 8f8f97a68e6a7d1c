"""Back-tests of policies on the history of a workspace."""
