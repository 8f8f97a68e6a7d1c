"""What a full disk looks like to a writer."""

from __future__ import annotations

import errno

FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
"""Error numbers that mean: no room, be it on the disk, in the file or in the quota."""
