// CUDA's names for a compiler of the host: blocks run in turn, the threads of a block as fibres that change places at
// barriers and shuffles. With a sanitizer of the compiler, reads out of bounds and races over memory fail.
#pragma once
#include <cstring>
#include <utility>

// Functions that switch between fibres are no part of a kernel, so the sanitizer does not see them.
#if defined(__SANITIZE_THREAD__)
#define UNSEEN __attribute__((no_sanitize("thread")))
#else
#define UNSEEN
#endif

// Variables of one library, which it reads without a table of addresses.
#define HIDDEN __attribute__((visibility("hidden")))

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("shared_memory")))

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
    unsigned long long count() const { return 1ull * x * y * z; }
    // The place that a number has, with x moving fastest.
    Dim3 place(unsigned long long number) const {
        return {unsigned(number % x), unsigned(number / x % y), unsigned(number / x / y)};
    }
};
extern HIDDEN Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host {

// The blocks of a launch that run now.
extern unsigned first_block, end_block;

[[noreturn]] void fail(const char* reason);
unsigned thread();
// Puts into the value what another thread of the warp shows; nothing where there is no such thread.
void exchange(unsigned mask, void* value, size_t size, unsigned partner);
// Runs a kernel. `together`: whether its threads meet at barriers or shuffles; the others run one after the other, which
// is faster.
void run(void (*call)(void* kernel, void** arguments), void* kernel, Dim3 blocks, Dim3 threads, void** arguments, bool together);

template <class... P, size_t... I> void call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<P>*>(arguments[I])...);
}
template <class... P> void launch(void (*kernel)(P...), Dim3 blocks, Dim3 threads, void** arguments, bool together) {
    run([](void* kernel, void** arguments) {
        call(reinterpret_cast<void (*)(P...)>(kernel), arguments, std::index_sequence_for<P...>{});
    }, reinterpret_cast<void*>(kernel), blocks, threads, arguments, together);
}
template <class... P> void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, void** arguments, bool together) {
    launch(kernel, Dim3{blocks}, Dim3{threads}, arguments, together);
}

// How many arguments a kernel has, and the bytes of each.
template <class... P> const size_t* sizes(void (*)(P...)) {
    static const size_t found[] = {sizeof...(P), sizeof(P)...};
    return found;
}

template <class T> UNSEEN T exchange(unsigned mask, T value, unsigned partner) {
    static_assert(sizeof(T) <= 16, "a shuffle of more than 16 bytes");
    exchange(mask, &value, sizeof(value), partner);
    return value;
}

}  // namespace host

void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);

template <class T> T __shfl_xor_sync(unsigned mask, T value, int other, int = 32) {
    return host::exchange(mask, value, host::thread() ^ other);
}
template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    return host::exchange(mask, value, host::thread() / width * width + lane % width);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    unsigned own = host::thread();
    return host::exchange(mask, value, own % width + by < unsigned(width) ? own + by : own);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    unsigned own = host::thread();
    return host::exchange(mask, value, own % width >= by ? own - by : own);
}

// The second value has the type that the place has.
template <class T> struct HostSame { using type = T; };
#define HOST_ATOMIC(name, result)                                                \
    template <class T> T name(T* place, typename HostSame<T>::type value) {      \
        T before = *place;                                                       \
        *place = T(result);                                                      \
        return before;                                                           \
    }
HOST_ATOMIC(atomicAdd, before + value)
HOST_ATOMIC(atomicSub, before - value)
HOST_ATOMIC(atomicExch, value)
HOST_ATOMIC(atomicMax, before > value ? before : value)
HOST_ATOMIC(atomicMin, before < value ? before : value)
HOST_ATOMIC(atomicAnd, before & value)
HOST_ATOMIC(atomicOr, before | value)
HOST_ATOMIC(atomicXor, before ^ value)
template <class T> T atomicCAS(T* place, typename HostSame<T>::type expected, typename HostSame<T>::type value) {
    T before = *place;
    if (before == expected) *place = value;
    return before;
}

// What the device's library has and the host's has not.
double erfinv(double y);
inline float erfinv(float y) { return (float)erfinv((double)y); }
double cyl_bessel_i0(double x);
double cyl_bessel_i1(double x);
