// Counts accesses of kernels, in place of ThreadSanitizer: compiled once, after `traffic.h`.
#define UNCOUNTED __attribute__((no_sanitize("thread")))

namespace traffic {

static Span* spans;
static unsigned count;

UNCOUNTED void watch(Span* others, unsigned number) { spans = others, count = number; }

static UNCOUNTED void touch(const void* address, uint64_t size, bool writes) {
    const char* place = static_cast<const char*>(address);
    for (unsigned i = 0; i < count; ++i) {
        Span& span = spans[i];
        if (place < span.begin || place >= span.begin + span.size) continue;
        const uint32_t self = blockIdx.x * 1024u + threadIdx.x + 1;
        for (uint64_t at = place - span.begin, end = at + size; at < end; ++at) {
            if (writes) {
                span.stored += 1;
                span.wrote += !span.written[at];
                span.written[at] = 1;
            } else {
                span.loaded += 1;
                span.read += !span.reader[at];
                if (!span.reader[at]) span.reader[at] = self;
                span.passed += span.reader[at] == self;
            }
        }
    }
}

}  // namespace traffic

#define COUNTED(size) \
    extern "C" UNCOUNTED void __tsan_read##size(void* place) { traffic::touch(place, size, false); } \
    extern "C" UNCOUNTED void __tsan_write##size(void* place) { traffic::touch(place, size, true); } \
    extern "C" UNCOUNTED void __tsan_unaligned_read##size(void* place) { traffic::touch(place, size, false); } \
    extern "C" UNCOUNTED void __tsan_unaligned_write##size(void* place) { traffic::touch(place, size, true); }
COUNTED(1)
COUNTED(2)
COUNTED(4)
COUNTED(8)
COUNTED(16)
#undef COUNTED
extern "C" UNCOUNTED void __tsan_read_range(void* place, unsigned long size) { traffic::touch(place, size, false); }
extern "C" UNCOUNTED void __tsan_write_range(void* place, unsigned long size) { traffic::touch(place, size, true); }
extern "C" UNCOUNTED void __tsan_func_entry(void*) {}
extern "C" UNCOUNTED void __tsan_func_exit() {}
extern "C" UNCOUNTED void __tsan_init() {}
