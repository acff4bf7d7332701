// Only its name is of use: bin/opensdn-daemon.
