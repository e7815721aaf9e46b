"""Starting and watching ranks: clusters, plain `mpiexec`, live views, traces."""
