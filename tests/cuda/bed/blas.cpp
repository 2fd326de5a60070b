// cuBLAS over the memory of the host: products, dot products and triangular systems, by the letter of their formulas,
// with sums in the precision that the library sums in. Work is submitted to the handle's stream.
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

extern "C" int bed_submit(void* stream, void (*work)(void*), void* argument);

namespace {

enum Type { float32 = 0, float64 = 1, float16 = 2, complex64 = 4, complex128 = 5, bfloat16 = 14 };  // cudaDataType
enum Status { success = 0, invalid_value = 7, execution_failed = 13 };

struct Handle {
    void* stream = nullptr;
    int pointer_mode = 0, math_mode = 0;
};

int submit(void* handle, std::function<void()> work) {
    auto* kept = new std::function<void()>(std::move(work));  // a graph runs it again: it is never given back
    auto run = [](void* argument) { (*static_cast<std::function<void()>*>(argument))(); };
    return bed_submit(static_cast<Handle*>(handle)->stream, run, kept) ? execution_failed : success;
}

struct Half {
    _Float16 value;
    operator float() const { return float(value); }
    Half& operator=(float x) { return value = _Float16(x), *this; }
};
struct Brain {
    uint16_t bits;
    operator float() const {
        uint32_t wide = uint32_t(bits) << 16;
        float found;
        std::memcpy(&found, &wide, 4);
        return found;
    }
    Brain& operator=(float x) {
        uint32_t wide;
        std::memcpy(&wide, &x, 4);
        if (x == x) wide += 0x7fff + (wide >> 16 & 1);  // to the nearest, ties to even
        else wide |= 1 << 22;
        bits = uint16_t(wide >> 16);
        return *this;
    }
};

template <class T> T conjugated(T x) { return x; }
template <class T> std::complex<T> conjugated(std::complex<T> x) { return std::conj(x); }

enum Operation { plain = 0, transposed = 1, adjoint = 2 };

// A matrix by columns, as it is or turned over.
template <class T> struct Matrix {
    const T* start;
    long leading;
    int operation;
    T operator()(long row, long column) const {
        T found = operation == plain ? start[row + column * leading] : start[column + row * leading];
        return operation == adjoint ? conjugated_(found) : found;
    }
    static Half conjugated_(Half x) { return x; }
    static Brain conjugated_(Brain x) { return x; }
    template <class U> static U conjugated_(U x) { return conjugated(x); }
};

// c = alpha a b + beta c. What c held is not read where beta is zero.
template <class In, class Out, class Sum>
void multiply(Matrix<In> a, Matrix<In> b, int m, int n, int k, Sum alpha, Sum beta, Out* c, long leading, long step = 1) {
    std::vector<Sum> row(k);
    for (int i = 0; i < m; ++i) {
        for (int l = 0; l < k; ++l) row[l] = Sum(a(i, l));
        for (int j = 0; j < n; ++j) {
            Sum total = Sum(0);
            for (int l = 0; l < k; ++l) total += row[l] * Sum(b(l, j));
            Out& place = c[i * step + j * leading];
            place = beta == Sum(0) ? alpha * total : alpha * total + beta * Sum(place);
        }
    }
}

struct Product {
    int operation_a, operation_b, m, n, k;
    const void* a;
    int type_a;
    long leading_a, step_a;
    const void* b;
    long leading_b, step_b;
    void* c;
    int type_c;
    long leading_c, step_c;
    int count;
};

template <class In, class Out, class Sum> std::function<void()> work_of(Product p, Sum alpha, Sum beta) {
    return [=] {
        for (int i = 0; i < p.count; ++i)
            multiply<In, Out, Sum>({static_cast<const In*>(p.a) + i * p.step_a, p.leading_a, p.operation_a},
                                   {static_cast<const In*>(p.b) + i * p.step_b, p.leading_b, p.operation_b},
                                   p.m, p.n, p.k, alpha, beta, static_cast<Out*>(p.c) + i * p.step_c, p.leading_c);
    };
}

template <class Sum> Sum number(const void* place) { return *static_cast<const Sum*>(place); }

// The product of types that the library has; its numbers alpha and beta are of the type it sums in.
int multiply_types(void* handle, const Product& p, const void* alpha, const void* beta, int type_b) {
    if (p.type_a != type_b) return invalid_value;
    std::function<void()> work;
    switch (p.type_a * 100 + p.type_c) {
#define PRODUCT(in, In, out, Out, Sum) \
    case in * 100 + out: work = work_of<In, Out, Sum>(p, number<Sum>(alpha), number<Sum>(beta)); break;
        PRODUCT(float32, float, float32, float, float)
        PRODUCT(float64, double, float64, double, double)
        PRODUCT(float16, Half, float16, Half, float)
        PRODUCT(float16, Half, float32, float, float)
        PRODUCT(bfloat16, Brain, bfloat16, Brain, float)
        PRODUCT(bfloat16, Brain, float32, float, float)
        PRODUCT(complex64, std::complex<float>, complex64, std::complex<float>, std::complex<float>)
        PRODUCT(complex128, std::complex<double>, complex128, std::complex<double>, std::complex<double>)
        default: return invalid_value;
    }
    return submit(handle, std::move(work));
}

// Solve op(a) x = alpha b, or x op(a) = alpha b, for a triangular a; x is written over b.
template <class T> void solve(bool left, bool lower, int operation, bool unit, int m, int n, T alpha, const T* start,
                              long leading, T* b, long leading_b) {
    Matrix<T> a{start, leading, operation};
    if (operation != plain) lower = !lower;
    int size = left ? m : n, others = left ? n : m;
    auto place = [&](int i, int other) -> T& { return left ? b[i + other * leading_b] : b[other + i * leading_b]; };
    auto factor = [&](int i, int j) { return left ? a(i, j) : a(j, i); };
    bool forward = left ? lower : !lower;
    for (int other = 0; other < others; ++other)
        for (int step = 0; step < size; ++step) {
            int i = forward ? step : size - 1 - step;
            T value = alpha * place(i, other);
            for (int j = forward ? 0 : i + 1; j < (forward ? i : size); ++j) value -= factor(i, j) * place(j, other);
            place(i, other) = unit ? value : value / factor(i, i);
        }
}

}  // namespace

LIBRARY cublasCreate_v2(void** handle) { return *handle = new Handle, success; }
LIBRARY cublasDestroy_v2(void* handle) { return delete static_cast<Handle*>(handle), success; }
LIBRARY cublasGetVersion_v2(void*, int* version) { return *version = 130000, success; }
LIBRARY cublasSetStream_v2(void* handle, void* stream) { return static_cast<Handle*>(handle)->stream = stream, success; }
LIBRARY cublasGetStream_v2(void* handle, void** stream) { return *stream = static_cast<Handle*>(handle)->stream, success; }
LIBRARY cublasSetPointerMode_v2(void* handle, int mode) { return static_cast<Handle*>(handle)->pointer_mode = mode, success; }
LIBRARY cublasGetPointerMode_v2(void* handle, int* mode) { return *mode = static_cast<Handle*>(handle)->pointer_mode, success; }
LIBRARY cublasSetMathMode(void* handle, int mode) { return static_cast<Handle*>(handle)->math_mode = mode, success; }
LIBRARY cublasGetMathMode(void* handle, int* mode) { return *mode = static_cast<Handle*>(handle)->math_mode, success; }

LIBRARY cublasGemmEx(void* handle, int operation_a, int operation_b, int m, int n, int k, const void* alpha, const void* a,
                     int type_a, int leading_a, const void* b, int type_b, int leading_b, const void* beta, void* c,
                     int type_c, int leading_c, int, int) {
    return multiply_types(handle, {operation_a, operation_b, m, n, k, a, type_a, leading_a, 0, b, leading_b, 0, c, type_c,
                                   leading_c, 0, 1}, alpha, beta, type_b);
}
LIBRARY cublasSgemmEx(void* handle, int operation_a, int operation_b, int m, int n, int k, const float* alpha, const void* a,
                      int type_a, int leading_a, const void* b, int type_b, int leading_b, const float* beta, void* c,
                      int type_c, int leading_c) {
    return cublasGemmEx(handle, operation_a, operation_b, m, n, k, alpha, a, type_a, leading_a, b, type_b, leading_b, beta, c,
                        type_c, leading_c, 0, 0);
}
LIBRARY cublasGemmStridedBatchedEx(void* handle, int operation_a, int operation_b, int m, int n, int k, const void* alpha,
                                   const void* a, int type_a, int leading_a, long long step_a, const void* b, int type_b,
                                   int leading_b, long long step_b, const void* beta, void* c, int type_c, int leading_c,
                                   long long step_c, int count, int, int) {
    return multiply_types(handle, {operation_a, operation_b, m, n, k, a, type_a, leading_a, long(step_a), b, leading_b,
                                   long(step_b), c, type_c, leading_c, long(step_c), count}, alpha, beta, type_b);
}

#define OF_TYPE(letter, T, type)                                                                                          \
    LIBRARY cublas##letter##gemm_v2(void* handle, int operation_a, int operation_b, int m, int n, int k, const T* alpha,    \
                                    const T* a, int leading_a, const T* b, int leading_b, const T* beta, T* c,             \
                                    int leading_c) {                                                                      \
        return cublasGemmEx(handle, operation_a, operation_b, m, n, k, alpha, a, type, leading_a, b, type, leading_b, beta, \
                            c, type, leading_c, 0, 0);                                                                    \
    }                                                                                                                     \
    LIBRARY cublas##letter##gemmStridedBatched(void* handle, int operation_a, int operation_b, int m, int n, int k,         \
                                               const T* alpha, const T* a, int leading_a, long long step_a, const T* b,    \
                                               int leading_b, long long step_b, const T* beta, T* c, int leading_c,        \
                                               long long step_c, int count) {                                             \
        return cublasGemmStridedBatchedEx(handle, operation_a, operation_b, m, n, k, alpha, a, type, leading_a, step_a, b,  \
                                          type, leading_b, step_b, beta, c, type, leading_c, step_c, count, 0, 0);         \
    }                                                                                                                     \
    LIBRARY cublas##letter##gemmBatched(void* handle, int operation_a, int operation_b, int m, int n, int k,                \
                                        const T* alpha, const T* const* a, int leading_a, const T* const* b, int leading_b, \
                                        const T* beta, T* const* c, int leading_c, int count) {                           \
        return submit(handle, [=, alpha = *alpha, beta = *beta] {                                                         \
            for (int i = 0; i < count; ++i)                                                                               \
                multiply<T, T, T>({a[i], leading_a, operation_a}, {b[i], leading_b, operation_b}, m, n, k, alpha, beta,    \
                                  c[i], leading_c);                                                                       \
        });                                                                                                               \
    }                                                                                                                     \
    LIBRARY cublas##letter##gemv_v2(void* handle, int operation, int m, int n, const T* alpha, const T* a, int leading,    \
                                    const T* x, int step_x, const T* beta, T* y, int step_y) {                            \
        int rows = operation == plain ? m : n, columns = operation == plain ? n : m;                                      \
        return submit(handle, [=, alpha = *alpha, beta = *beta] {                                                         \
            multiply<T, T, T>({a, leading, operation}, {x, step_x, transposed}, rows, 1, columns, alpha, beta, y, 0,       \
                              step_y);                                                                                    \
        });                                                                                                               \
    }                                                                                                                     \
    LIBRARY cublas##letter##trsm_v2(void* handle, int right, int upper, int operation, int unit, int m, int n,             \
                                    const T* alpha, const T* a, int leading, T* b, int leading_b) {                       \
        return submit(handle, [=, alpha = *alpha] {                                                                       \
            solve<T>(!right, !upper, operation, unit, m, n, alpha, a, leading, b, leading_b);                              \
        });                                                                                                               \
    }                                                                                                                     \
    LIBRARY cublas##letter##trsmBatched(void* handle, int right, int upper, int operation, int unit, int m, int n,         \
                                        const T* alpha, const T* const* a, int leading, T* const* b, int leading_b,        \
                                        int count) {                                                                      \
        return submit(handle, [=, alpha = *alpha] {                                                                       \
            for (int i = 0; i < count; ++i)                                                                               \
                solve<T>(!right, !upper, operation, unit, m, n, alpha, a[i], leading, b[i], leading_b);                    \
        });                                                                                                               \
    }
OF_TYPE(S, float, float32)
OF_TYPE(D, double, float64)
OF_TYPE(C, std::complex<float>, complex64)
OF_TYPE(Z, std::complex<double>, complex128)

#define DOT(name, T, conjugates)                                                                                 \
    LIBRARY cublas##name##_v2(void* handle, int n, const T* x, int step_x, const T* y, int step_y, T* result) {    \
        return submit(handle, [=] {                                                                              \
            T total(0);                                                                                          \
            for (long i = 0; i < n; ++i)                                                                          \
                total += (conjugates ? conjugated(x[i * step_x]) : x[i * step_x]) * y[i * step_y];                \
            *result = total;                                                                                     \
        });                                                                                                      \
    }
DOT(Sdot, float, false)
DOT(Ddot, double, false)
DOT(Cdotu, std::complex<float>, false)
DOT(Cdotc, std::complex<float>, true)
DOT(Zdotu, std::complex<double>, false)
DOT(Zdotc, std::complex<double>, true)
