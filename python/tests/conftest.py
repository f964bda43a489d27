"""Settings of every Python test."""

import signal

# A run that a script started in the background ignores Ctrl-C, and so would every process that tests
# start to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
