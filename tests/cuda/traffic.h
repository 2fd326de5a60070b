// Every load and store of a kernel that runs on the host, by the memory that it is in: the compiler calls these functions
// before each access, as it would call ThreadSanitizer's.
#pragma once
#include <cstdint>

namespace traffic {

// Memory of an array. `reader` has a number for each byte: the thread that was the first to read it, from one on; `written`
// whether it was written. A byte that this thread reads again is another pass; those that read it beside share it.
struct Span {
    const char* begin;
    uint64_t size;
    uint32_t* reader;
    unsigned char* written;
    uint64_t loaded, passed, read, stored, wrote;
};

// Watch so many from now on.
void watch(Span* others, unsigned number);

}  // namespace traffic
