"""Virtual webs whose whole truth is known, and runs of policies and strategies over them.

Also the trials by which the papers evaluated their methods, on histories that were recorded or made (``*_trial``).
"""
