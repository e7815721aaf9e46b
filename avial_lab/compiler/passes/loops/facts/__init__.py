"""Facts on loops that later passes use: no aliases, independent accesses, parallel."""
