"""What tools/test_gpu.py does: looks at the machine, builds, and runs the tests."""
