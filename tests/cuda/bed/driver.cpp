// CUDA's driver and runtime over the memory of the host, as far as CuPy calls them.
//
// It is loaded as libcuda.so.1. The runtime is linked into CuPy's modules; `loading.py` makes each of its functions
// `cudaX` jump to `bed_cudaX` here. A module of kernels is a shared library of the host, which the image names.
//
// A stream is a queue of tasks. With BED_ORDER=now a task runs when it is submitted. With BED_ORDER=late it runs when
// the host waits for it, or when another task does; other streams then come first wherever nothing orders them. With
// BED_ORDER=<number> each submission runs a part of a queue that this seed chooses. So work that ought to wait for
// another stream, and does not, gives wrong numbers.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

int setting(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
}

// ------------------------------------------------------------------------------------------------------ the lock

// One thread at a time is in here. Tasks may be functions of Python: who has to wait gives Python's lock away first.
std::recursive_mutex machine;

struct Inside {
    Inside() {
        if (machine.try_lock()) return;
        static auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
        static auto save = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyEval_SaveThread"));
        static auto restore = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"));
        void* state = check && check() ? save() : nullptr;
        machine.lock();
        if (state) restore(state);
    }
    ~Inside() { machine.unlock(); }
};

// ------------------------------------------------------------------------------------------------ devices, errors

const int device_count = setting("BED_DEVICES", 2), processors = setting("BED_PROCESSORS", 132);
const size_t total_memory = size_t(setting("BED_GIGABYTES", 16)) << 30;
thread_local int device = 0, last_error = 0;

int fail(int status) { return last_error = status; }

// How often the host was asked to wait.
long waits = 0;

// --------------------------------------------------------------------------------------------------------- memory

enum Kind { pinned = 1, of_device = 2, managed = 3 };  // numbers of cudaMemoryType

struct Block {
    size_t size;
    int device;
    Kind kind;
    struct Pool* pool;
};
std::map<size_t, Block> blocks;
size_t used_memory = 0;

struct Pool {
    int device = 0;
    uint64_t used = 0, most = 0, release_threshold = 0;
};
Pool default_pools[16];
Pool* current_pools[16];

const std::pair<const size_t, Block>* block_at(const void* place) {
    auto at = blocks.upper_bound(size_t(place));
    if (at == blocks.begin()) return nullptr;
    --at;
    return size_t(place) < at->first + std::max<size_t>(at->second.size, 1) ? &*at : nullptr;
}

int allocate(void** place, size_t size, Kind kind, Pool* pool = nullptr) {
    if (used_memory + size > total_memory) return fail(cudaErrorMemoryAllocation);
    size_t rounded = std::max<size_t>((size + 511) / 512 * 512, 512);
    if (posix_memalign(place, 512, rounded)) return fail(cudaErrorMemoryAllocation);
    std::memset(*place, 255, rounded);  // NaN, whatever floating type it is read as
    blocks[size_t(*place)] = {size, pool ? pool->device : device, kind, pool};
    used_memory += size;
    if (pool) pool->most = std::max(pool->most, pool->used += size);
    return 0;
}

int release(void* place) {
    if (!place) return 0;
    auto at = blocks.find(size_t(place));
    if (at == blocks.end()) return fail(cudaErrorInvalidValue);
    used_memory -= at->second.size;
    if (at->second.pool) at->second.pool->used -= at->second.size;
    std::memset(place, 255, at->second.size);
    blocks.erase(at);
    std::free(place);
    return 0;
}

// ------------------------------------------------------------------------------------- streams, events, captures

struct Stream;
struct Capture;

// How far a stream was when an event was recorded.
struct Mark {
    Stream* stream;
    bool reached = false;
    double time = 0;
    Capture* capture = nullptr;
    std::map<Stream*, long> seen;  // in a capture: how much of each stream comes before
};
using Marker = std::shared_ptr<Mark>;

struct Task {
    std::function<void()> work;
    Marker before, mark;  // what it waits for, and what it reaches
};

using Graph = std::vector<std::function<void()>>;

// What is noted in place of being run, of the stream that began and of those that joined by an event.
struct Capture {
    Stream* origin;
    int mode;
    bool valid = true;
    Graph work;
    std::map<Stream*, std::map<Stream*, long>> seen;
    std::map<Stream*, long> noted;
};

struct Stream {
    int device = 0;
    unsigned flags = 0;
    std::deque<Task> queue;
    Capture* capture = nullptr;
    Marker last;  // of what was submitted last
    bool blocking() const { return !(flags & cudaStreamNonBlocking); }
};

struct Event {
    Marker mark;
};

std::vector<Stream*> streams;
Stream* null_streams[16];
std::vector<Capture*> captures;

enum Order { now, late, by_chance } order = now;
std::mt19937 chance;

void set_order(const char* text) {
    order = !text || !std::strcmp(text, "now") ? now : !std::strcmp(text, "late") ? late : by_chance;
    if (order == by_chance) chance.seed(unsigned(std::atoi(text)));
}
const bool order_is_set = (set_order(std::getenv("BED_ORDER")), true);

double milliseconds() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Stream* null_stream(int of) {
    if (!null_streams[of]) {
        null_streams[of] = new Stream{of};
        streams.push_back(null_streams[of]);
    }
    return null_streams[of];
}

Stream* stream_of(const void* handle) {
    return size_t(handle) <= 2 ? null_stream(device) : static_cast<Stream*>(const_cast<void*>(handle));
}

// Run the first task of a queue, and what it waits for.
void step(Stream* stream) {
    Task task = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (task.before)
        while (!task.before->reached && !task.before->stream->queue.empty()) step(task.before->stream);
    if (task.work) task.work();
    if (task.mark) task.mark->reached = true, task.mark->time = milliseconds();
}

void finish(Stream* stream) {
    while (!stream->queue.empty()) step(stream);
}

void finish(const Marker& mark) {
    while (mark && !mark->reached && !mark->stream->queue.empty()) step(mark->stream);
}

void finish_device(int of) {  // those that were made last come first: nothing orders streams by their making
    for (size_t i = streams.size(); i-- > 0;)
        if (of < 0 || streams[i]->device == of) finish(streams[i]);
}

void submit(Stream* stream, Task task) {
    // The default stream waits for all that block, and these for it.
    for (Stream* other : streams) {
        bool ordered = other != stream && other->device == stream->device && other->blocking() && stream->blocking() &&
                       (stream == null_stream(stream->device) || other == null_stream(stream->device));
        if (ordered && other->last && !other->last->reached) stream->queue.push_back({nullptr, other->last, nullptr});
    }
    if (!task.mark) task.mark = std::make_shared<Mark>(Mark{stream});
    stream->last = task.mark;
    stream->queue.push_back(std::move(task));
    if (order == now) finish(stream);
    if (order == by_chance) {
        Stream* chosen = streams[chance() % streams.size()];
        for (size_t count = chance() % 4; count-- > 0 && !chosen->queue.empty();) step(chosen);
    }
}

int spoil(Capture* capture, int status) {
    capture->valid = false;
    return fail(status);
}

// A call that may wait or allocate, which a capture in another mode than the relaxed one refuses.
int refused_by_captures() {
    for (Capture* capture : captures)
        if (capture->mode != cudaStreamCaptureModeRelaxed) return spoil(capture, cudaErrorStreamCaptureUnsupported);
    return 0;
}

// The default stream is part of each blocking stream's work, which a capture cannot note.
int implicit_dependency(Stream* stream) {
    if (stream != null_stream(stream->device)) return 0;
    for (Capture* capture : captures)
        if (capture->origin->blocking() && capture->origin->device == stream->device)
            return spoil(capture, cudaErrorStreamCaptureImplicit);
    return 0;
}

int run(const void* handle, std::function<void()> work) {
    Stream* stream = stream_of(handle);
    if (Capture* capture = stream->capture) {
        if (!capture->valid) return fail(cudaErrorStreamCaptureInvalidated);
        capture->work.push_back(std::move(work));
        capture->seen[stream][stream] = ++capture->noted[stream];
        return 0;
    }
    if (int status = implicit_dependency(stream)) return status;
    submit(stream, {std::move(work), nullptr, nullptr});
    return 0;
}

void merge(std::map<Stream*, long>& into, const std::map<Stream*, long>& other) {
    for (auto& [stream, count] : other) into[stream] = std::max(into[stream], count);
}

int wait_for_host(Stream* stream) {
    if (stream->capture) return spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
    if (int status = implicit_dependency(stream)) return status;
    if (stream == null_stream(stream->device)) finish_device(stream->device);
    else finish(stream);
    return 0;
}

int copy(void* to, const void* from, size_t size) {
    std::memmove(to, from, size);
    return 0;
}

}  // namespace

// -------------------------------------------------------------------------------------------------- for `bed` itself

API void bed_order(const char* text) {
    Inside inside;
    finish_device(-1);
    set_order(text);
}
// Work of the host's own, behind what the stream has to do.
API int bed_submit(void* stream, void (*work)(void*), void* argument) {
    Inside inside;
    return run(stream, [=] { work(argument); });
}
API long bed_waits() { return waits; }
API int bed_missing(const char* name) {
    std::fprintf(stderr, "bed: %s is not there\n", name);
    return fail(cudaErrorNotSupported);
}
// The stacks of a block's threads, shared by the kernels of all modules: they run one at a time.
API char* host_stack(unsigned thread) {
    constexpr size_t size = 1 << 16;
    static char* stacks = static_cast<char*>(std::malloc(1024 * size));
    return stacks + thread * size;
}

// -------------------------------------------------------------------------------------------- runtime: devices, errors

API int bed_cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, 0; }
API int bed_cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, 0; }
API int bed_cudaGetDevice(int* found) { return *found = device, 0; }
API int bed_cudaGetDeviceCount(int* count) { return *count = device_count, device_count ? 0 : fail(cudaErrorNoDevice); }
API int bed_cudaSetDevice(int chosen) {
    if (chosen < 0 || chosen >= device_count) return fail(cudaErrorInvalidDevice);
    return device = chosen, 0;
}
API int bed_cudaDeviceSynchronize() {
    Inside inside;
    for (Capture* capture : captures) return spoil(capture, cudaErrorStreamCaptureUnsupported);
    ++waits;
    finish_device(device);
    return 0;
}
API int bed_cudaGetLastError() {
    int status = last_error;
    last_error = 0;
    return status;
}
API int bed_cudaPeekAtLastError() { return last_error; }
API int bed_cudaGetDeviceProperties(cudaDeviceProp* found, int) {
    std::memset(found, 0, sizeof *found);
    std::strcpy(found->name, "NVIDIA H100 (bed)");
    found->totalGlobalMem = total_memory;
    found->major = 9;
    found->multiProcessorCount = processors;
    found->warpSize = 32;
    found->maxThreadsPerBlock = found->maxThreadsDim[0] = found->maxThreadsDim[1] = 1024;
    found->maxThreadsDim[2] = 64;
    found->maxGridSize[0] = 2147483647;
    found->maxGridSize[1] = found->maxGridSize[2] = 65535;
    found->maxThreadsPerMultiProcessor = 2048;
    found->regsPerBlock = 65536;
    found->sharedMemPerBlock = 49152;
    found->sharedMemPerBlockOptin = 232448;
    found->sharedMemPerMultiprocessor = 233472;
    found->l2CacheSize = 50 << 20;
    found->memoryBusWidth = 5120;
    found->textureAlignment = 512;
    found->unifiedAddressing = found->managedMemory = found->memoryPoolsSupported = 1;
    return 0;
}
API int bed_cudaGetDeviceProperties_v2(cudaDeviceProp* found, int of) { return bed_cudaGetDeviceProperties(found, of); }
API int bed_cudaDeviceGetAttribute(int* value, int attribute, int of) {
    cudaDeviceProp found;
    bed_cudaGetDeviceProperties(&found, of);
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: *value = found.maxThreadsPerBlock; break;
        case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: *value = found.maxThreadsDim[0]; break;
        case cudaDevAttrMaxBlockDimZ: *value = found.maxThreadsDim[2]; break;
        case cudaDevAttrMaxGridDimX: *value = found.maxGridSize[0]; break;
        case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: *value = found.maxGridSize[1]; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = int(found.sharedMemPerBlock); break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = int(found.sharedMemPerBlockOptin); break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = int(found.sharedMemPerMultiprocessor); break;
        case cudaDevAttrTotalConstantMemory: *value = 65536; break;
        case cudaDevAttrWarpSize: *value = found.warpSize; break;
        case cudaDevAttrMaxRegistersPerBlock: *value = found.regsPerBlock; break;
        case cudaDevAttrMultiProcessorCount: *value = found.multiProcessorCount; break;
        case cudaDevAttrMaxThreadsPerMultiProcessor: *value = found.maxThreadsPerMultiProcessor; break;
        case cudaDevAttrComputeCapabilityMajor: *value = found.major; break;
        case cudaDevAttrComputeCapabilityMinor: *value = found.minor; break;
        case cudaDevAttrL2CacheSize: *value = found.l2CacheSize; break;
        case cudaDevAttrUnifiedAddressing: case cudaDevAttrManagedMemory: case cudaDevAttrMemoryPoolsSupported:
        case cudaDevAttrConcurrentManagedAccess: case cudaDevAttrAsyncEngineCount: *value = 1; break;
        default: *value = 0;
    }
    return 0;
}
API int bed_cudaDeviceGetPCIBusId(char* text, int size, int of) { return std::snprintf(text, size, "0000:%02X:00.0", of + 1), 0; }
API int bed_cudaDeviceGetLimit(size_t* value, int) { return *value = 1024, 0; }
API int bed_cudaDeviceSetLimit(int, size_t) { return 0; }
API int bed_cudaDeviceCanAccessPeer(int* value, int, int) { return *value = 0, 0; }
API int bed_cudaDeviceEnablePeerAccess(int, unsigned) { return fail(cudaErrorPeerAccessUnsupported); }

namespace {

struct Words {
    const char *name, *text;
};
const Words& words_of(int status) {
#define WORDS(name, text) {name, {#name, text}}
    static const std::map<int, Words> found{
        WORDS(cudaSuccess, "no error"),
        WORDS(cudaErrorInvalidValue, "invalid argument"),
        WORDS(cudaErrorMemoryAllocation, "out of memory"),
        WORDS(cudaErrorNoDevice, "no CUDA-capable device is detected"),
        WORDS(cudaErrorInvalidDevice, "invalid device ordinal"),
        WORDS(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
        WORDS(cudaErrorFileNotFound, "file not found"),
        WORDS(cudaErrorSymbolNotFound, "named symbol not found"),
        WORDS(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
        WORDS(cudaErrorNotSupported, "operation not supported"),
        WORDS(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
        WORDS(cudaErrorNotReady, "device not ready"),
        WORDS(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
        WORDS(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
        WORDS(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
        WORDS(cudaErrorStreamCaptureImplicit,
              "operation would make the legacy stream depend on a capturing blocking stream")};
#undef WORDS
    static const Words unknown{"cudaErrorUnknown", "unknown error"};
    auto at = found.find(status);
    return at == found.end() ? unknown : at->second;
}

}  // namespace

API const char* bed_cudaGetErrorName(int status) { return words_of(status).name; }
API const char* bed_cudaGetErrorString(int status) { return words_of(status).text; }

// ----------------------------------------------------------------------------------------------------- runtime: memory

API int bed_cudaMalloc(void** place, size_t size) {
    Inside inside;
    if (int status = refused_by_captures()) return status;
    return allocate(place, size, of_device);
}
API int bed_cudaMallocManaged(void** place, size_t size, unsigned) { Inside inside; return allocate(place, size, managed); }
API int bed_cudaFree(void* place) {
    Inside inside;
    if (!place) return 0;
    if (int status = refused_by_captures()) return status;
    finish_device(-1);  // as the device does
    return release(place);
}
API int bed_cudaHostAlloc(void** place, size_t size, unsigned) {
    Inside inside;
    if (int status = refused_by_captures()) return status;
    return allocate(place, size, pinned);
}
API int bed_cudaMallocHost(void** place, size_t size) { return bed_cudaHostAlloc(place, size, 0); }
API int bed_cudaFreeHost(void* place) { return bed_cudaFree(place); }
API int bed_cudaHostRegister(void*, size_t, unsigned) { return 0; }
API int bed_cudaHostUnregister(void*) { return 0; }
API int bed_cudaMemGetInfo(size_t* rest, size_t* total) {
    Inside inside;
    *rest = total_memory - used_memory, *total = total_memory;
    return 0;
}
API int bed_cudaPointerGetAttributes(cudaPointerAttributes* found, const void* place) {
    Inside inside;
    std::memset(found, 0, sizeof *found);
    const auto* at = block_at(place);
    if (!at) {
        found->type = cudaMemoryTypeUnregistered, found->device = -2;
        return 0;
    }
    found->type = cudaMemoryType(at->second.kind), found->device = at->second.device;
    found->devicePointer = const_cast<void*>(place);
    found->hostPointer = at->second.kind == of_device ? nullptr : const_cast<void*>(place);
    return 0;
}

// Pools of the driver: memory is given and taken back in the order of a stream.
API int bed_cudaDeviceGetDefaultMemPool(void** pool, int of) {
    default_pools[of].device = of;
    return *pool = &default_pools[of], 0;
}
API int bed_cudaDeviceGetMemPool(void** pool, int of) {
    if (!current_pools[of]) return bed_cudaDeviceGetDefaultMemPool(pool, of);
    return *pool = current_pools[of], 0;
}
API int bed_cudaDeviceSetMemPool(int of, void* pool) { return current_pools[of] = static_cast<Pool*>(pool), 0; }
API int bed_cudaMemPoolCreate(void** pool, const cudaMemPoolProps* wanted) {
    auto* made = new Pool;
    made->device = wanted->location.id;
    return *pool = made, 0;
}
API int bed_cudaMemPoolDestroy(void* pool) { return delete static_cast<Pool*>(pool), 0; }
API int bed_cudaMemPoolTrimTo(void*, size_t) { return 0; }
API int bed_cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
    auto* of = static_cast<Pool*>(pool);
    auto& found = *static_cast<uint64_t*>(value);
    switch (attribute) {
        case cudaMemPoolAttrReleaseThreshold: found = of->release_threshold; break;
        case cudaMemPoolAttrReservedMemCurrent: case cudaMemPoolAttrUsedMemCurrent: found = of->used; break;
        case cudaMemPoolAttrReservedMemHigh: case cudaMemPoolAttrUsedMemHigh: found = of->most; break;
        default: *static_cast<int*>(value) = 1;
    }
    return 0;
}
API int bed_cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
    if (attribute == cudaMemPoolAttrReleaseThreshold)
        static_cast<Pool*>(pool)->release_threshold = *static_cast<uint64_t*>(value);
    return 0;
}
API int bed_cudaMallocFromPoolAsync(void** place, size_t size, void* pool, void* stream) {
    Inside inside;
    if (Capture* capture = stream_of(stream)->capture) return spoil(capture, cudaErrorNotSupported);  // not modelled
    return allocate(place, size, of_device, static_cast<Pool*>(pool));
}
API int bed_cudaMallocAsync(void** place, size_t size, void* stream) {
    void* pool;
    bed_cudaDeviceGetMemPool(&pool, device);
    return bed_cudaMallocFromPoolAsync(place, size, pool, stream);
}
API int bed_cudaFreeAsync(void* place, void* stream) {
    Inside inside;
    if (!block_at(place)) return fail(cudaErrorInvalidValue);
    return run(stream, [=] { release(place); });
}

API int bed_cudaMemcpy(void* to, const void* from, size_t size, int) {
    Inside inside;
    if (int status = refused_by_captures()) return status;
    ++waits;
    if (int status = wait_for_host(null_stream(device))) return status;
    return copy(to, from, size);
}
API int bed_cudaMemcpyAsync(void* to, const void* from, size_t size, int, void* stream) {
    Inside inside;
    const auto *target = block_at(to), *source = block_at(from);
    if (target && source) return run(stream, [=] { copy(to, from, size); });
    // Memory of the host that is not pinned: read before the call returns, or written before it.
    Stream* on = stream_of(stream);
    if (on->capture) return spoil(on->capture, cudaErrorStreamCaptureUnsupported);
    if (source) {
        if (int status = wait_for_host(on)) return status;
        return copy(to, from, size);
    }
    auto content = std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + size);
    return run(stream, [=] { copy(to, content->data(), size); });
}
API int bed_cudaMemcpyPeer(void* to, int, const void* from, int, size_t size) {
    Inside inside;
    if (int status = refused_by_captures()) return status;
    ++waits;
    finish_device(-1);
    return copy(to, from, size);
}
API int bed_cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, void* stream) {
    Inside inside;
    return run(stream, [=] { copy(to, from, size); });
}
API int bed_cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              int, void* stream) {
    Inside inside;
    return run(stream, [=] {
        for (size_t row = 0; row < height; ++row)
            copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
    });
}
API int bed_cudaMemset(void* place, int value, size_t size) {
    Inside inside;
    if (int status = refused_by_captures()) return status;
    return run(nullptr, [=] { std::memset(place, value, size); });
}
API int bed_cudaMemsetAsync(void* place, int value, size_t size, void* stream) {
    Inside inside;
    return run(stream, [=] { std::memset(place, value, size); });
}

// -------------------------------------------------------------------------------------------- runtime: streams, events

API int bed_cudaStreamCreateWithFlags(void** made, unsigned flags) {
    Inside inside;
    auto* stream = new Stream{device, flags};
    streams.push_back(stream);
    return *made = stream, 0;
}
API int bed_cudaStreamCreate(void** made) { return bed_cudaStreamCreateWithFlags(made, 0); }
API int bed_cudaStreamCreateWithPriority(void** made, unsigned flags, int) { return bed_cudaStreamCreateWithFlags(made, flags); }
API int bed_cudaStreamGetFlags(void* stream, unsigned* flags) { return *flags = stream_of(stream)->flags, 0; }
API int bed_cudaStreamGetPriority(void*, int* priority) { return *priority = 0, 0; }
API int bed_cudaStreamDestroy(void* handle) {  // marks and captures may name it still: it stays, without work
    Inside inside;
    finish(stream_of(handle));
    streams.erase(std::remove(streams.begin(), streams.end(), stream_of(handle)), streams.end());
    return 0;
}
API int bed_cudaStreamSynchronize(void* stream) { Inside inside; return ++waits, wait_for_host(stream_of(stream)); }
API int bed_cudaStreamQuery(void* handle) {
    Inside inside;
    Stream* stream = stream_of(handle);
    if (stream->capture) return spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
    if (stream->queue.empty()) return 0;
    step(stream);  // who asks again and again comes to an end
    return cudaErrorNotReady;
}
API int bed_cudaStreamWaitEvent(void* handle, void* event, unsigned) {
    Inside inside;
    Stream* stream = stream_of(handle);
    Marker mark = static_cast<Event*>(event)->mark;
    if (!mark) return 0;
    if (mark->capture) {  // the stream joins the capture, or waits inside of it
        if (stream->capture && stream->capture != mark->capture) return spoil(mark->capture, cudaErrorStreamCaptureUnsupported);
        stream->capture = mark->capture;
        merge(mark->capture->seen[stream], mark->seen);
        mark->capture->noted.try_emplace(stream, 0);
        return 0;
    }
    if (stream->capture) return spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
    if (!mark->reached) submit(stream, {nullptr, mark, nullptr});
    return 0;
}
API int bed_cudaLaunchHostFunc(void* stream, void (*function)(void*), void* argument) { return bed_submit(stream, function, argument); }
API int bed_cudaStreamAddCallback(void* handle, void (*function)(void*, int, void*), void* argument, unsigned) {
    Inside inside;
    if (Capture* capture = stream_of(handle)->capture) return spoil(capture, cudaErrorStreamCaptureUnsupported);
    return run(handle, [=] { function(handle, 0, argument); });
}
API int bed_cudaEventCreateWithFlags(void** event, unsigned) { return *event = new Event, 0; }
API int bed_cudaEventCreate(void** event) { return bed_cudaEventCreateWithFlags(event, 0); }
API int bed_cudaEventDestroy(void* event) { Inside inside; return delete static_cast<Event*>(event), 0; }
API int bed_cudaEventRecord(void* event, void* handle) {
    Inside inside;
    Stream* stream = stream_of(handle);
    auto mark = std::make_shared<Mark>(Mark{stream});
    static_cast<Event*>(event)->mark = mark;
    if (stream->capture) {
        mark->capture = stream->capture, mark->reached = true;
        mark->seen = stream->capture->seen[stream];
        return 0;
    }
    if (int status = implicit_dependency(stream)) return status;
    submit(stream, {nullptr, nullptr, mark});
    return 0;
}
API int bed_cudaEventQuery(void* event) {
    Inside inside;
    Marker mark = static_cast<Event*>(event)->mark;
    if (!mark || (mark->reached && !mark->capture)) return 0;
    if (mark->capture) return spoil(mark->capture, cudaErrorStreamCaptureUnsupported);
    step(mark->stream);
    return cudaErrorNotReady;
}
API int bed_cudaEventSynchronize(void* event) {
    Inside inside;
    Marker mark = static_cast<Event*>(event)->mark;
    if (mark && mark->capture) return spoil(mark->capture, cudaErrorStreamCaptureUnsupported);
    ++waits;
    finish(mark);
    return 0;
}
API int bed_cudaEventElapsedTime(float* time, void* from, void* to) {
    Inside inside;
    *time = float(static_cast<Event*>(to)->mark->time - static_cast<Event*>(from)->mark->time);
    return 0;
}
API int bed_cudaEventElapsedTime_v2(float* time, void* from, void* to) { return bed_cudaEventElapsedTime(time, from, to); }

// ----------------------------------------------------------------------------------------------------- runtime: graphs

API int bed_cudaStreamBeginCapture(void* handle, int mode) {
    Inside inside;
    Stream* stream = stream_of(handle);
    if (size_t(handle) <= 2) return fail(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return fail(cudaErrorIllegalState);
    stream->capture = new Capture{stream, mode};
    captures.push_back(stream->capture);
    return 0;
}
API int bed_cudaStreamEndCapture(void* handle, void** graph) {
    Inside inside;
    Stream* stream = stream_of(handle);
    *graph = nullptr;
    Capture* capture = stream->capture;
    if (!capture || capture->origin != stream) return fail(cudaErrorIllegalState);
    captures.erase(std::remove(captures.begin(), captures.end(), capture), captures.end());
    bool joined = true;
    for (auto& [other, count] : capture->noted) {
        joined &= other == stream || capture->seen[stream][other] >= count;
        other->capture = nullptr;
    }
    stream->capture = nullptr;  // the capture itself stays: events name it
    if (!capture->valid) return fail(cudaErrorStreamCaptureInvalidated);
    if (!joined) return fail(cudaErrorStreamCaptureUnjoined);
    *graph = new Graph(std::move(capture->work));
    return 0;
}
API int bed_cudaStreamIsCapturing(void* handle, int* status) {
    Inside inside;
    Stream* stream = stream_of(handle);
    if (int refused = implicit_dependency(stream)) return refused;
    *status = !stream->capture ? cudaStreamCaptureStatusNone
            : stream->capture->valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
    return 0;
}
API int bed_cudaGraphInstantiate(void** made, void* graph, unsigned long long) {
    return *made = new std::shared_ptr<Graph>(new Graph(*static_cast<Graph*>(graph))), 0;
}
API int bed_cudaGraphInstantiateWithFlags(void** made, void* graph, unsigned long long flags) {
    return bed_cudaGraphInstantiate(made, graph, flags);
}
API int bed_cudaGraphDestroy(void* graph) { return delete static_cast<Graph*>(graph), 0; }
API int bed_cudaGraphExecDestroy(void* graph) { return delete static_cast<std::shared_ptr<Graph>*>(graph), 0; }
API int bed_cudaGraphUpload(void*, void*) { return 0; }
API int bed_cudaGraphLaunch(void* handle, void* stream) {
    Inside inside;
    std::shared_ptr<Graph> graph = *static_cast<std::shared_ptr<Graph>*>(handle);
    return run(stream, [=] { for (auto& work : *graph) work(); });
}

// -------------------------------------------------------------------------------------------- driver: modules, launches

namespace {

using Launch = void (*)(const unsigned* sizes, void** arguments);  // blocks and threads in x, y, z, and shared bytes

struct Kernel {
    Launch launch;
    const size_t* sizes;  // how many arguments, and the bytes of each
};
struct Module {
    void* library;
    std::map<std::string, Kernel> kernels;
};

}  // namespace

// The driver's own names. (`cuda.h` would declare them with its types.)
API int cuInit(unsigned) { return 0; }
API int cuDriverGetVersion(int* version) { return bed_cudaDriverGetVersion(version); }
API int cuGetErrorName(int status, const char** text) { return *text = bed_cudaGetErrorName(status), 0; }
API int cuGetErrorString(int status, const char** text) { return *text = bed_cudaGetErrorString(status), 0; }
API int cuCtxGetCurrent(void** context) { return *context = reinterpret_cast<void*>(size_t(device + 1)), 0; }
API int cuCtxSetCurrent(void* context) { return context ? bed_cudaSetDevice(int(size_t(context)) - 1) : 0; }
API int cuCtxGetDevice(int* found) { return *found = device, 0; }
API int cuCtxCreate(void** context, unsigned, int of) { return *context = reinterpret_cast<void*>(size_t(of + 1)), 0; }
API int cuCtxCreate_v2(void** context, unsigned flags, int of) { return cuCtxCreate(context, flags, of); }
API int cuCtxDestroy(void*) { return 0; }
API int cuCtxDestroy_v2(void*) { return 0; }
API int cuDevicePrimaryCtxRelease(int) { return 0; }
API int cuStreamGetCtx(void* stream, void** context) {
    Inside inside;
    return *context = reinterpret_cast<void*>(size_t(stream_of(stream)->device + 1)), 0;
}
// The image is a line that says so, and the path of a library.
API int cuModuleLoadData(void** module, const void* image) {
    Inside inside;
    const char *text = static_cast<const char*>(image), mark[] = "bed\n";
    if (std::strncmp(text, mark, sizeof mark - 1)) return fail(cudaErrorInvalidKernelImage);
    void* library = dlopen(text + sizeof mark - 1, RTLD_NOW | RTLD_LOCAL);
    if (!library) return std::fprintf(stderr, "bed: %s\n", dlerror()), fail(cudaErrorInvalidKernelImage);
    return *module = new Module{library, {}}, 0;
}
API int cuModuleLoad(void**, const char*) { return fail(cudaErrorFileNotFound); }
API int cuModuleUnload(void*) { return 0; }
API int cuModuleGetFunction(void** function, void* handle, const char* name) {
    Inside inside;
    auto* module = static_cast<Module*>(handle);
    auto [at, fresh] = module->kernels.try_emplace(name);
    if (fresh) {
        auto symbol = [&](const char* prefix) { return dlsym(module->library, (std::string(prefix) + name).c_str()); };
        auto launch = symbol("launch_"), sizes = symbol("sizes_");
        if (!launch || !sizes) return module->kernels.erase(at), fail(cudaErrorSymbolNotFound);
        at->second = {reinterpret_cast<Launch>(launch), reinterpret_cast<const size_t* (*)()>(sizes)()};
    }
    return *function = &at->second, 0;
}
API int cuModuleGetGlobal(size_t* place, size_t* size, void* module, const char* name) {
    *place = size_t(dlsym(static_cast<Module*>(module)->library, name));
    if (size) *size = 0;
    return *place ? 0 : fail(cudaErrorSymbolNotFound);
}
API int cuModuleGetGlobal_v2(size_t* place, size_t* size, void* module, const char* name) { return cuModuleGetGlobal(place, size, module, name); }
API int cuFuncGetAttribute(int* value, int attribute, void*) {
    return *value = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize ? 49152 : attribute == 0 ? 1024 : attribute == 4 ? 32 : 0, 0;
}
API int cuFuncSetAttribute(void*, int, int) { return 0; }
API int cuLaunchKernel(void* function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz,
                       unsigned shared, void* stream, void** arguments, void**) {
    Inside inside;
    auto* kernel = static_cast<Kernel*>(function);
    size_t threads = size_t(tx) * ty * tz;
    if (!bx || !by || !bz || !threads || threads > 1024 || tz > 64 || bx > 2147483647u || by > 65535 || bz > 65535)
        return fail(cudaErrorInvalidValue);
    size_t count = kernel->sizes[0], bytes = 0;
    std::vector<size_t> places(count);
    for (size_t i = 0; i < count; ++i) places[i] = bytes = (bytes + 15) / 16 * 16, bytes += kernel->sizes[i + 1];
    std::shared_ptr<char> values(static_cast<char*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64)), std::free);
    for (size_t i = 0; i < count; ++i) std::memcpy(values.get() + places[i], arguments[i], kernel->sizes[i + 1]);
    return run(stream, [=] {
        std::vector<void*> found;
        for (size_t place : places) found.push_back(values.get() + place);
        const unsigned sizes[] = {bx, by, bz, tx, ty, tz, shared};
        kernel->launch(sizes, found.data());
    });
}
API int cuLaunchCooperativeKernel(void*, ...) { return bed_missing("cuLaunchCooperativeKernel"); }
API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void*, int threads, size_t) { return *count = 2048 / threads, 0; }
API int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void*, void*, size_t, int limit) {
    return *block = limit ? limit : 1024, *grid = 2 * processors, 0;
}
API int cuLinkCreate(void*, ...) { return bed_missing("cuLinkCreate"); }
API int cuLinkAddData(void*, ...) { return bed_missing("cuLinkAddData"); }
API int cuLinkAddFile(void*, ...) { return bed_missing("cuLinkAddFile"); }
API int cuLinkComplete(void*, ...) { return bed_missing("cuLinkComplete"); }
API int cuLinkDestroy(void*, ...) { return bed_missing("cuLinkDestroy"); }
