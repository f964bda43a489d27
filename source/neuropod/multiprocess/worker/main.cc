#include "neuropod/multiprocess/worker/worker_program.hh"

int main(int argc, char** argv) { return neuropod::run_worker(argc, argv); }
