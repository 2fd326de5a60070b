// CUDA's types of 16 bits and vectors, from its headers, which come before the words that `host.h` gives a meaning to.
#pragma once
#include <math.h>
#include <cmath>
#define __CUDACC_VER_MAJOR__ 13
#include <vector_types.h>
#include <vector_functions.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#undef __device__
#undef __host__
#undef __global__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
