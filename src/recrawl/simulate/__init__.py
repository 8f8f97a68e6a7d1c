"""Virtual webs whose whole truth is known, and runs of policies and strategies over them."""
