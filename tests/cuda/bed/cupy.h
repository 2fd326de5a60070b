// What the texts of CuPy's kernels use beside `types.h` and `host.h`: functions of the device's library under their
// CUDA names, and CuPy's own headers, so that all of it is compiled once and not with each kernel.
#pragma once
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cstddef>
#include <limits>
#include <type_traits>
#undef __shared__
#define __shared__ static
#define __host__
#define __constant__
#define __noinline__
#define __managed__

// Shared memory whose size the launch says: the texts declare arrays without one.
alignas(64) static char dynamic_shared_memory[233472];

static const int warpSize = 32;

inline void __threadfence_block() {}
template <class T> T __ldg(const T* place) { return *place; }

template <class To, class From> To host_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "bits of another size");
    To found;
    __builtin_memcpy(&found, &value, sizeof found);
    return found;
}
inline int __float_as_int(float x) { return host_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return host_bits<unsigned>(x); }
inline float __int_as_float(int x) { return host_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return host_bits<float>(x); }
inline long long __double_as_longlong(double x) { return host_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return host_bits<double>(x); }
inline int __float2int_rn(float x) { return int(std::nearbyint(x)); }
inline long long __float2ll_rn(float x) { return (long long)std::nearbyint(x); }
inline long long __double2ll_rn(double x) { return (long long)std::nearbyint(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline double rcbrt(double x) { return 1.0 / std::cbrt(x); }
inline double sinpi(double x) { return std::sin(M_PI * x); }
inline double cospi(double x) { return std::cos(M_PI * x); }
using std::abs; using std::exp; using std::fmod; using std::isfinite; using std::isinf; using std::isnan; using std::log;
using std::pow; using std::signbit; using std::sqrt; using std::tanh;

// The greater and the lesser: of floats the one that is no NaN, as the device's library has them.
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
std::common_type_t<A, B> max(A a, B b) {
    using Common = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<Common>) return std::fmax(Common(a), Common(b));
    else return Common(a) > Common(b) ? Common(a) : Common(b);
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
std::common_type_t<A, B> min(A a, B b) {
    using Common = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<Common>) return std::fmin(Common(a), Common(b));
    else return Common(a) < Common(b) ? Common(a) : Common(b);
}

#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
