// The threads of a block as fibres, and what they wait for: compiled once for the kernels of all texts,
// after `host.h`.
#include <math.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ucontext.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// A function that jumps to another stack. It has no code of the sanitizers, which take a jump for the end of all calls.
#define JUMPS __attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static

// The variables in shared memory; a kernel that declares none has none.
extern "C" { extern char __start_shared_memory[] __attribute__((weak)), __stop_shared_memory[] __attribute__((weak)); }
// Stacks that the kernels of many libraries share, where somebody has them.
extern "C" char* host_stack(unsigned thread) __attribute__((weak));

Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host {

unsigned first_block = 0, end_block = ~0u;

enum class State { ready, at_barrier, at_shuffle, done };

// A place to jump to, on any stack. The system's functions start a fibre, and no more: they also set the mask of signals, by
// a call of the system, which takes ten times as long as a jump.
using Jump = void*[5];

struct Fibre {
    ucontext_t context;  // its start
    Jump place;          // where it goes on
    bool begun = false;
    char* stack = nullptr;
    State state = State::ready;
    uint64_t slots[2][2];  // what it shows others of its warp, in turns
    unsigned shuffles, barriers;
    void* tsan = nullptr;
    void* asan = nullptr;
};

// One of each for all libraries of a process, which may share stacks: so many are much memory.
constexpr size_t stack_size = 1 << 16;
constexpr unsigned most_threads = 1024;
inline Fibre fibres[most_threads];
inline Fibre* current = nullptr;
inline Jump scheduler;
inline void *scheduler_asan = nullptr, *scheduler_tsan = nullptr;
inline const void* scheduler_stack = nullptr;
inline size_t scheduler_size = 0;
inline void (*body)(void* kernel, void** arguments);
inline void *body_kernel, **body_arguments;
// For the sanitizer: who waits at a place has seen what others did before they came there. There are two of each, in
// turns, so that nobody sees what another did after it left the one before.
inline char start, finish, block_places[2], warp_places[most_threads / 32][2];

[[noreturn]] void fail(const char* reason) {
    std::fprintf(stderr, "kernel: %s (block %u, thread %u)\n", reason, blockIdx.x, threadIdx.x);
    std::abort();
}

unsigned thread() { return current ? unsigned(current - fibres) : 0; }

// The compiler allows no function that both remembers a place and jumps.
[[noreturn]] JUMPS void jump(Jump& place) { __builtin_longjmp(place, 1); }

JUMPS void leave(bool last) {
    (void)last;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(last ? nullptr : &current->asan, scheduler_stack, scheduler_size);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(scheduler_tsan, 1);
#endif
    if (!__builtin_setjmp(current->place)) jump(scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(current->asan, &scheduler_stack, &scheduler_size);
#endif
}

static UNSEEN void wait(State state, char* place) {
    (void)place;
#if defined(__SANITIZE_THREAD__)
    __tsan_release(place);
#endif
    current->state = state;
    leave(false);
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(place);
#endif
}

static UNSEEN void enter() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(&start);
#endif
    body(body_kernel, body_arguments);
#if defined(__SANITIZE_THREAD__)
    __tsan_release(&finish);
#endif
    current->state = State::done;
    leave(true);
}

JUMPS void resume(unsigned thread) {
    current = &fibres[thread];
    threadIdx = blockDim.place(thread);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler_asan, current->stack, stack_size);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(current->tsan, 1);
#endif
    if (!__builtin_setjmp(scheduler)) {
        if (current->begun) jump(current->place);
        current->begun = true;
        setcontext(&current->context);
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler_asan, nullptr, nullptr);
#endif
    current = nullptr;
}

// All that wait for the same thing go on together: a warp after a shuffle, the block after a barrier. Who is done counts
// as one that has come to the barrier.
static UNSEEN bool release(unsigned threads) {
    bool released = false;
    for (unsigned warp = 0; warp < threads; warp += 32) {
        unsigned end = warp + 32 < threads ? warp + 32 : threads, shuffling = 0;
        for (unsigned i = warp; i < end; ++i) shuffling += fibres[i].state == State::at_shuffle;
        if (shuffling && shuffling < end - warp) fail("the threads of a warp part ways before a shuffle");
        if (!shuffling) continue;
        for (unsigned i = warp; i < end; ++i) fibres[i].state = State::ready;
        released = true;
    }
    if (released) return true;
    for (unsigned i = 0; i < threads; ++i)
        if (fibres[i].state == State::at_barrier) fibres[i].state = State::ready, released = true;
    return released;
}

static UNSEEN void run_block(unsigned threads, bool reversed) {
    if (&__start_shared_memory)  // NaN, whatever floating type it is read as
        std::memset(__start_shared_memory, 255, __stop_shared_memory - __start_shared_memory);
    if (threads > most_threads) fail("more threads than a block has");
#if defined(__SANITIZE_THREAD__)
    scheduler_tsan = __tsan_get_current_fiber();
    __tsan_release(&start);
#endif
    ucontext_t here;
    getcontext(&here);
    for (unsigned i = 0; i < threads; ++i) {
        Fibre& fibre = fibres[i];
        if (!fibre.stack) {
            fibre.stack = host_stack ? host_stack(i) : static_cast<char*>(std::malloc(stack_size));
            getcontext(&fibre.context);
        }
        fibre.state = State::ready;
        fibre.begun = false;
        fibre.shuffles = fibre.barriers = 0;
#if defined(__SANITIZE_THREAD__)
        if (!fibre.tsan) fibre.tsan = __tsan_create_fiber(0);  // it serves all blocks: one takes longer than a block
#endif
        fibre.context.uc_sigmask = here.uc_sigmask;
        fibre.context.uc_stack.ss_sp = fibre.stack;
        fibre.context.uc_stack.ss_size = stack_size;
        fibre.context.uc_link = nullptr;
        makecontext(&fibre.context, enter, 0);
    }
    do {
        for (unsigned i = 0; i < threads; ++i) {
            unsigned thread = reversed ? threads - 1 - i : i;
            if (fibres[thread].state == State::ready) resume(thread);
        }
    } while (release(threads));
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(&finish);
#endif
}

void run(void (*call)(void* kernel, void** arguments), void* kernel, Dim3 blocks, Dim3 threads, void** arguments,
         bool together) {
    body = call, body_kernel = kernel, body_arguments = arguments;
    const char* order = std::getenv("CUDA_HOST_ORDER");
    bool reversed = order && !std::strcmp(order, "reversed");
    gridDim = blocks, blockDim = threads;
    const unsigned long long block_count = blocks.count();
    for (unsigned long long i = first_block; i < block_count && i < end_block; ++i) {
        blockIdx = blocks.place(reversed ? block_count - 1 - i : i);
        if (together) run_block(unsigned(threads.count()), reversed);
        else for (threadIdx.z = 0; threadIdx.z < threads.z; ++threadIdx.z)
            for (threadIdx.y = 0; threadIdx.y < threads.y; ++threadIdx.y)
                for (threadIdx.x = 0; threadIdx.x < threads.x; ++threadIdx.x) call(kernel, arguments);
    }
}

UNSEEN void exchange(unsigned mask, void* value, size_t size, unsigned partner) {
    if (mask != 0xffffffffu) fail("a shuffle of a part of a warp");
    Fibre* self = current;
    if (!self) fail("a shuffle in a kernel that was said to have none");
    unsigned turn = self->shuffles++ & 1, own = unsigned(self - fibres);
    __builtin_memcpy(&self->slots[turn], value, size);
    wait(State::at_shuffle, &warp_places[own / 32][turn]);
    if (partner < blockDim.count() && partner / 32 == own / 32)
        __builtin_memcpy(value, &fibres[partner].slots[turn], size);
}

}  // namespace host

UNSEEN void __syncthreads() {
    if (!host::current) host::fail("a barrier in a kernel that was said to have none");
    host::wait(host::State::at_barrier, &host::block_places[host::current->barriers++ & 1]);
}

UNSEEN void __syncwarp(unsigned mask) {
    int nothing = 0;
    if (host::current) host::exchange(mask, &nothing, sizeof(nothing), host::thread());
}

double erfinv(double y) {
    if (!(y > -1.0 && y < 1.0)) return y == 1.0 || y == -1.0 ? y * HUGE_VAL : NAN;
    if (std::fabs(y) < 1e-8) return y * std::sqrt(M_PI) / 2.0;
    double size = std::fabs(y), rest = std::log((1.0 - size) * (1.0 + size)), middle = 2.0 / (M_PI * 0.147) + rest / 2.0;
    double x = std::sqrt(std::sqrt(middle * middle - rest / 0.147) - middle);
    for (int i = 0; i < 3; ++i) {  // Halley's steps, on what is left of 1 so that no digits are lost near it
        double step = ((1.0 - size) - std::erfc(x)) * std::exp(x * x) * std::sqrt(M_PI) / 2.0;
        x -= step / (1.0 + x * step);
    }
    return std::copysign(x, y);
}
double cyl_bessel_i0(double x) { return std::isfinite(x) ? std::cyl_bessel_i(0.0, std::fabs(x)) : std::fabs(x); }
double cyl_bessel_i1(double x) { return std::isfinite(x) ? std::copysign(std::cyl_bessel_i(1.0, std::fabs(x)), x) : x; }
