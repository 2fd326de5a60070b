// Stands for cublasLt on the host: the functions that are used of it, with their C types, over memory of the host.
// It multiplies by the descriptors it is given and nothing else, and refuses what the library refuses: attributes it
// does not know or of another size, matrices that do not fit each other, addresses that are less aligned than was said,
// algorithms that are not for this product, too small a workspace.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

// Where the bed's driver is loaded, a product waits for its turn on its stream.
extern "C" int bed_submit(void* stream, void (*work)(void*), void* argument) __attribute__((weak));

namespace {

enum { SUCCESS = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };
enum { DEFAULT = 1, BIAS = 4, BGRADB = 512 };
constexpr size_t workspace_bytes = 4096;

struct Descriptor {
    int compute, scale;
    int32_t transposed[2] = {0, 0};
    uint32_t epilogue = DEFAULT;
    char* bias = nullptr;
};
struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t step;
    int32_t batch = 1;
    int64_t apart = 0;
};
struct Preference {
    uint64_t workspace = 0;
    uint32_t alignments[4] = {256, 256, 256, 256};
};
struct Algorithm {
    uint64_t data[8];
};
struct Heuristic {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
// What was multiplied, for tests to look at.
struct Record {
    int64_t transposed_a, transposed_b, m, n, k, batch, compute, epilogue, added, stream;
};

int handle_object, handles, live, heuristics, fails;
uint32_t refused;  // epilogues that there is no algorithm for
std::vector<Record> records;

size_t size_of(int type) { return type == R_64F ? 8 : type == R_32F ? 4 : 2; }

double half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

uint16_t to_half(double value) {
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    value = std::fabs(value);
    if (std::isnan(value)) return 0x7e00;
    if (value >= 65520) return sign | 0x7c00;
    int exponent;
    std::frexp(value, &exponent);
    int step = exponent < -13 ? -24 : exponent - 11;  // the last bit's
    double whole = std::nearbyint(std::ldexp(value, -step));
    if (step == -24) return sign | (uint16_t)whole;
    if (whole == 2048) whole = 1024, ++step;
    return sign | (uint16_t)((step + 25) << 10) | ((uint16_t)whole & 1023);
}

double read(const char* memory, int type, int64_t i) {
    memory += i * (int64_t)size_of(type);
    if (type == R_64F) { double x; std::memcpy(&x, memory, 8); return x; }
    if (type == R_32F) { float x; std::memcpy(&x, memory, 4); return x; }
    uint16_t bits;
    std::memcpy(&bits, memory, 2);
    if (type == R_16F) return half(bits);
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    std::memcpy(&x, &wide, 4);
    return x;
}

void write(char* memory, int type, int64_t i, double value) {
    memory += i * (int64_t)size_of(type);
    if (type == R_64F) { std::memcpy(memory, &value, 8); return; }
    float x = (float)value;
    if (type == R_32F) { std::memcpy(memory, &x, 4); return; }
    uint16_t bits;
    if (type == R_16F) bits = to_half(value);
    else {
        uint32_t wide;
        std::memcpy(&wide, &x, 4);
        bits = std::isnan(x) ? 0x7fc0 : (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
    std::memcpy(memory, &bits, 2);
}

double tf32(double value) {  // 10 bits behind the first
    int exponent;
    if (!std::isfinite(value)) return value;
    std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(value, 11 - exponent)), exponent - 11);
}

uint64_t rows_of(const Layout& x, bool transposed) { return transposed ? x.columns : x.rows; }
uint64_t columns_of(const Layout& x, bool transposed) { return transposed ? x.rows : x.columns; }

// Whether the library takes these together; its answer.
int check(const Descriptor& d, const Layout& a, const Layout& b, const Layout& c, const Layout& out) {
    const bool ta = d.transposed[0], tb = d.transposed[1];
    for (const Layout* each : {&a, &b, &c, &out})
        if (each->step < (int64_t)each->rows || !each->rows || !each->columns) return INVALID_VALUE;
    if (columns_of(a, ta) != rows_of(b, tb) || rows_of(a, ta) != out.rows || columns_of(b, tb) != out.columns
        || c.rows != out.rows || c.columns != out.columns || a.batch != out.batch || b.batch != out.batch
        || c.batch != out.batch) return INVALID_VALUE;
    if (out.batch > 1 && out.apart < (int64_t)(out.step * (out.columns - 1) + out.rows)) return INVALID_VALUE;
    if (a.type != b.type || a.type != out.type || c.type != out.type) return NOT_SUPPORTED;
    if (d.compute == COMPUTE_64F ? a.type != R_64F || d.scale != R_64F : a.type == R_64F || d.scale != R_32F)
        return NOT_SUPPORTED;
    if (d.compute == COMPUTE_32F_FAST_TF32 && a.type != R_32F) return NOT_SUPPORTED;
    if (d.epilogue != DEFAULT && d.epilogue != BIAS && d.epilogue != BGRADB) return NOT_SUPPORTED;
    if (d.epilogue & refused & ~(uint32_t)DEFAULT) return NOT_SUPPORTED;
    if (d.epilogue != DEFAULT && (d.compute == COMPUTE_64F || (d.epilogue == BGRADB && out.batch > 1)))
        return NOT_SUPPORTED;
    return SUCCESS;
}

uint64_t signature(const Descriptor& d, const Layout& a, const Layout& b, const Layout& out) {
    uint64_t hash = 14695981039346656037u;
    for (uint64_t each : {(uint64_t)d.compute, (uint64_t)d.transposed[0], (uint64_t)d.transposed[1], (uint64_t)d.epilogue,
                          (uint64_t)a.type, a.rows, a.columns, b.rows, b.columns, (uint64_t)out.batch})
        hash = (hash ^ each) * 1099511628211u;
    return hash;
}

template <class T> int set(T& into, const void* from, size_t size) {
    if (size != sizeof(T) || !from) return INVALID_VALUE;
    std::memcpy(&into, from, size);
    return SUCCESS;
}

template <class T> int destroy(T* each) {
    delete each;
    --live;
    return SUCCESS;
}

// The product and its epilogue.
void compute(const Descriptor& d, const char* a, const Layout& la, const char* b, const Layout& lb, const char* c,
             const Layout& lc, char* out, const Layout& lout, double factor, double kept) {
    const int type = lout.type;
    const bool ta = d.transposed[0], tb = d.transposed[1];
    const int64_t m = lout.rows, n = lout.columns, k = columns_of(la, ta);
    auto rounded = [&](double x) { return d.compute == COMPUTE_32F_FAST_TF32 ? tf32(x) : x; };
    for (int64_t batch = 0; batch < lout.batch; ++batch) {
        for (int64_t j = 0; j < n; ++j) {
            double gradient = 0;
            for (int64_t i = 0; i < m; ++i) {
                double total = 0;
                for (int64_t l = 0; l < k; ++l) {
                    double left = read(a, type, batch * la.apart + (ta ? l + i * la.step : i + l * la.step));
                    double right = read(b, type, batch * lb.apart + (tb ? j + l * lb.step : l + j * lb.step));
                    total += rounded(left) * rounded(right);
                    if (i == 0) gradient += right;
                }
                total *= factor;
                int64_t place = batch * lout.apart + i + j * lout.step;
                if (kept) total += kept * read(c, type, batch * lc.apart + i + j * lc.step);
                if (d.epilogue == BIAS) total += read(d.bias, type, i);
                write(out, type, place, total);
            }
            if (d.epilogue == BGRADB) write(d.bias, type, j, gradient);
        }
    }
}

}  // namespace

extern "C" {

int cublasLtCreate(void** handle) { *handle = &handle_object; ++handles; return SUCCESS; }
int cublasLtDestroy(void* handle) { --handles; return handle == &handle_object ? SUCCESS : INVALID_VALUE; }

int cublasLtMatmulDescCreate(Descriptor** made, int compute, int scale) {
    *made = new Descriptor{compute, scale};
    ++live;
    return SUCCESS;
}
int cublasLtMatmulDescDestroy(Descriptor* each) { return destroy(each); }
int cublasLtMatmulDescSetAttribute(Descriptor* each, int attribute, const void* from, size_t size) {
    switch (attribute) {
        case 3: return set(each->transposed[0], from, size);
        case 4: return set(each->transposed[1], from, size);
        case 7: return set(each->epilogue, from, size);
        case 8: return set(each->bias, from, size);
    }
    return INVALID_VALUE;
}

int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns, int64_t step) {
    *made = new Layout{type, rows, columns, step};
    ++live;
    return SUCCESS;
}
int cublasLtMatrixLayoutDestroy(Layout* each) { return destroy(each); }
int cublasLtMatrixLayoutSetAttribute(Layout* each, int attribute, const void* from, size_t size) {
    switch (attribute) {
        case 5: return set(each->batch, from, size);
        case 6: return set(each->apart, from, size);
    }
    return INVALID_VALUE;
}

int cublasLtMatmulPreferenceCreate(Preference** made) {
    *made = new Preference;
    ++live;
    return SUCCESS;
}
int cublasLtMatmulPreferenceDestroy(Preference* each) { return destroy(each); }
int cublasLtMatmulPreferenceSetAttribute(Preference* each, int attribute, const void* from, size_t size) {
    if (attribute == 1) return set(each->workspace, from, size);
    if (attribute >= 5 && attribute <= 8) return set(each->alignments[attribute - 5], from, size);
    return INVALID_VALUE;
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, Descriptor* d, Layout* a, Layout* b, Layout* c, Layout* out,
                                   Preference* preference, int asked, Heuristic* found, int* count) {
    if (handle != &handle_object || asked < 1) return INVALID_VALUE;
    ++heuristics;
    *count = 0;
    if (int status = check(*d, *a, *b, *c, *out)) return status;
    std::memset(found, 0, sizeof(*found));
    found->algorithm.data[0] = signature(*d, *a, *b, *out);
    found->workspace = preference->workspace < workspace_bytes ? 0 : workspace_bytes;
    found->algorithm.data[1] = found->workspace;
    for (int i = 0; i < 4; ++i) {
        uint32_t alignment = preference->alignments[i];
        if (!alignment || (alignment & (alignment - 1))) return INVALID_VALUE;
        found->algorithm.data[2 + i] = alignment;
    }
    *count = 1;
    return SUCCESS;
}

int cublasLtMatmul(void* handle, Descriptor* d, const void* alpha, const char* a, Layout* la, const char* b, Layout* lb,
                   const void* beta, const char* c, Layout* lc, char* out, Layout* lout, const Algorithm* algorithm,
                   char* workspace, size_t workspace_size, void* stream) {
    if (fails) return EXECUTION_FAILED;
    if (handle != &handle_object || !alpha || !beta || !algorithm) return INVALID_VALUE;
    if (int status = check(*d, *la, *lb, *lc, *lout)) return status;
    if (algorithm->data[0] != signature(*d, *la, *lb, *lout)) return NOT_SUPPORTED;
    const char* places[4] = {a, b, c, out};
    for (int i = 0; i < 4; ++i)
        if (!places[i] || (uintptr_t)places[i] % algorithm->data[2 + i]) return INVALID_VALUE;
    if (workspace_size < algorithm->data[1] || (uintptr_t)workspace % 256) return INVALID_VALUE;
    if (d->epilogue != DEFAULT && (!d->bias || (uintptr_t)d->bias < 4096)) return INVALID_VALUE;
    const Descriptor descriptor = *d;
    const Layout layout_a = *la, layout_b = *lb, layout_c = *lc, layout = *lout;
    const bool wide = d->scale == R_64F;
    const double factor = wide ? *(const double*)alpha : *(const float*)alpha;
    const double kept = wide ? *(const double*)beta : *(const float*)beta;
    const size_t used = algorithm->data[1];
    auto multiply = [=] {
        if (used) std::memset(workspace, 255, used);
        compute(descriptor, a, layout_a, b, layout_b, c, layout_c, out, layout, factor, kept);
    };
    const bool transposed_a = d->transposed[0], transposed_b = d->transposed[1];
    records.push_back({transposed_a, transposed_b, (int64_t)lout->rows, (int64_t)lout->columns, columns_of(*la, transposed_a),
                       lout->batch, d->compute, (int64_t)d->epilogue, kept != 0, (int64_t)stream});
    if (!bed_submit) return multiply(), SUCCESS;
    // Never given back: a graph runs it again.
    auto* work = new std::function<void()>(multiply);
    auto run = [](void* argument) { (*static_cast<std::function<void()>*>(argument))(); };
    return bed_submit(stream, run, work) ? EXECUTION_FAILED : SUCCESS;
}

// Questions of tests.
int standin_handles() { return handles; }
int standin_live() { return live; }
int standin_heuristics() { return heuristics; }
void standin_fail(int now) { fails = now; }
void standin_refuse(uint32_t epilogues) { refused = epilogues; }
int standin_count() { return (int)records.size(); }
void standin_take(Record* into) {
    std::memcpy(into, records.data(), records.size() * sizeof(Record));
    records.clear();
}

}  // extern "C"
