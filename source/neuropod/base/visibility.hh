#pragma once

/// Marks what a shared library shows to others. Everything else is built hidden
/// (`-fvisibility=hidden`), so that a framework in the same process can't bind to our symbols.
#define NEUROPOD_EXPORT __attribute__((visibility("default")))
