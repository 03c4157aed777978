//! Write-ahead log, versions in memory, redb underneath, checkpoint, recovery.
