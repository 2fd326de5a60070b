#pragma once
// The functions that launch a kernel and say what its arguments are, which the driver looks up by name.
#define BED_KERNEL(name, kernel, together)                                                                     \
    extern "C" __attribute__((visibility("default"))) void launch_##name(const unsigned* sizes, void** arguments) { \
        host::launch(kernel, Dim3{sizes[0], sizes[1], sizes[2]}, Dim3{sizes[3], sizes[4], sizes[5]}, arguments, together); \
    }                                                                                                          \
    extern "C" __attribute__((visibility("default"))) const size_t* sizes_##name() { return host::sizes(kernel); }
