"""Travel in time: Memento, CDX, replay and packages over what a workspace archived."""
