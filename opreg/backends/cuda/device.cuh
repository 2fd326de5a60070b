// What generated kernels are made of: numbers as they are stored and as they are computed with, packs of them that are
// loaded at once, the instructions of expressions that C++ has no operator for, and reductions over the threads of a row.
// It needs no header of CUDA's, so that a compiler at run time needs no folder of them. The text is C++17.

typedef unsigned short Bits;

// ---------------------------------------------------------------------------------------------------- numbers

// 16 bits, to store: the widest exponent range of IEEE's half, and the upper half of a float.
struct Half { Bits bits; };
struct BFloat { Bits bits; };

template <class To, class From> __device__ __forceinline__ To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}

__device__ __forceinline__ float wide(Half stored) {
#ifdef __CUDA_ARCH__
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(stored.bits));
    return number;
#else
    unsigned sign = (stored.bits & 0x8000u) << 16, rest = stored.bits & 0x7fffu;
    if (rest >= 0x7c00u) return bits_as<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    float number = bits_as<float>(sign | rest << 13);
    return number * 5.192296858534828e33f;  // 2 ** 112, between the two exponents' biases; subnormal numbers too
#endif
}

__device__ __forceinline__ float wide(BFloat stored) { return bits_as<float>((unsigned)stored.bits << 16); }
__device__ __forceinline__ float wide(float stored) { return stored; }
__device__ __forceinline__ double wide(double stored) { return stored; }

// A number as it is stored, rounded to nearest, ties to even.
template <class Stored, class Number> struct Narrow {
    static __device__ __forceinline__ Stored of(Number number) { return (Stored)number; }
};

template <class Number> struct Narrow<Half, Number> {
    static __device__ __forceinline__ Half of(Number number) {
        Half stored;
#ifdef __CUDA_ARCH__
        if constexpr (sizeof(Number) == 8) asm("cvt.rn.f16.f64 %0, %1;" : "=h"(stored.bits) : "d"(number));
        else asm("cvt.rn.f16.f32 %0, %1;" : "=h"(stored.bits) : "f"(number));
#else
        double size = number < 0 ? -(double)number : (double)number;
        Bits sign = bits_as<unsigned long long>((double)number) >> 48 & 0x8000u;
        if (number != number) stored.bits = 0x7e00u;
        else if (size >= 65520.0) stored.bits = sign | 0x7c00u;
        else {
            // Added to a number, so large a one leaves it a multiple of what one unit in the last place is.
            int exponent = (int)(bits_as<unsigned long long>(size) >> 52) - 1023;
            double unit = bits_as<double>((unsigned long long)((exponent < -14 ? -14 : exponent) - 10 + 52 + 1023) << 52);
            double rounded = (size + unit) - unit;
            exponent = (int)(bits_as<unsigned long long>(rounded) >> 52) - 1023;
            if (rounded == 0.0) stored.bits = sign;
            else if (exponent < -14) stored.bits = sign | (Bits)(rounded * 16777216.0);
            else stored.bits = sign | (Bits)((exponent + 15) << 10)
                             | (Bits)(bits_as<unsigned long long>(rounded) >> 42 & 0x3ffu);
        }
#endif
        return stored;
    }
};

template <class Number> struct Narrow<BFloat, Number> {
    static __device__ __forceinline__ BFloat of(Number number) {
        float rounded = (float)number;
        if constexpr (sizeof(Number) == 8) {  // towards the odd neighbour, so that rounding again rounds once
            unsigned bits = bits_as<unsigned>(rounded);
            if ((double)rounded != number && number == number && !(bits & 1u)) {
                bool above = (rounded < 0 ? -(double)rounded : (double)rounded) > (number < 0 ? -number : number);
                rounded = bits_as<float>(above ? bits - 1u : bits + 1u);
            }
        }
        unsigned bits = bits_as<unsigned>(rounded);
        if ((bits & 0x7fffffffu) > 0x7f800000u) return BFloat{(Bits)(bits >> 16 | 0x40u)};
        return BFloat{(Bits)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
    }
};

template <class Stored, class Number> __device__ __forceinline__ Stored narrow(Number number) {
    return Narrow<Stored, Number>::of(number);
}

// So many numbers side by side, read and written 16 bytes at a time.
template <class Stored, int count> struct alignas(sizeof(Stored) * count < 16 ? sizeof(Stored) * count : 16) Pack {
    Stored at[count];
};

template <int count, class Stored> __device__ __forceinline__ Pack<Stored, count> load(const Stored* from) {
    return *reinterpret_cast<const Pack<Stored, count>*>(from);
}

template <int count, class Stored> __device__ __forceinline__ void store(Stored* to, const Pack<Stored, count>& pack) {
    *reinterpret_cast<Pack<Stored, count>*>(to) = pack;
}

// ----------------------------------------------------------------------------------------------- instructions

// NaN where one is NaN, as in NumPy. Of two zeros the positive one is the larger, as it is by the device's own
// instruction, which CuPy uses.
template <class T> __device__ __forceinline__ T larger(T a, T b) {
    return a > b || a != a ? a : a == b && a == T(0) ? a + b : b;
}
template <class T> __device__ __forceinline__ T smaller(T a, T b) {
    return a < b || a != a ? a : a == b && a == T(0) ? -(-a - b) : b;
}

template <class T> __device__ __forceinline__ T sign_of(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x; }

// The remainder has the sign of the divisor.
template <class T> __device__ __forceinline__ T modulo(T a, T b) {
    T rest = fmod(a, b);
    if (rest == T(0)) return copysign(T(0), b);
    return (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}

// The derivative of the logarithm of the gamma function of order `order + 1`: for order 0 Abramowitz and Stegun 6.3.18,
// else the NIST Digital Library's 25.11.5, and 5.15.6 below zero.
template <int order> __device__ inline double polygamma(double x) {
    const double bernoulli[8] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510};
    const double pi = 3.14159265358979323846;
    double y = x <= 0.0 ? 1.0 - x : x, end = y + 10.0, value;
    if constexpr (order == 0) {
        double inverse = 1.0 / (end * end), sum = 0.0;
        for (int j = 8; j >= 1; --j) sum = (sum - bernoulli[j - 1] / (2 * j)) * inverse;
        value = log(end) - 0.5 / end + sum;
        for (int k = 9; k >= 0; --k) value -= 1.0 / (y + k);
    } else {
        const int power = order + 1;
        double factorial = 1.0;
        for (int k = 2; k <= order; ++k) factorial *= k;
        value = pow(end, 1.0 - power) / (power - 1) + 0.5 * pow(end, -(double)power);
        double factor = power, below = 1.0;
        for (int j = 1; j <= 8; ++j) {
            below *= (2 * j - 1) * (2 * j);
            value += pow(end, 1.0 - power - 2 * j) * (bernoulli[j - 1] * factor / below);
            factor *= (double)(power + 2 * j - 1) * (power + 2 * j);
        }
        for (int k = 9; k >= 0; --k) value += pow(y + k, -(double)power);
        value *= order % 2 ? factorial : -factorial;
    }
    if (x > 0.0) return value;
    if (!(x <= 0.0)) return x;
    // The derivative of that order of pi cot(pi x) is a polynomial in the cotangent.
    double terms[order + 2] = {0.0, pi}, cotangent = 1.0 / tan(pi * (x - rint(x)));
    for (int step = 0; step < order; ++step) {
        double slope[order + 2] = {};
        for (int i = 0; i <= step + 1; ++i) if (i) slope[i - 1] += -pi * i * terms[i];
        for (int i = 0; i <= step + 1; ++i) if (i && i + 1 < order + 2) slope[i + 1] += -pi * i * terms[i];
        for (int i = 0; i < order + 2; ++i) terms[i] = slope[i];
    }
    double reflected = terms[order + 1];
    for (int i = order; i >= 0; --i) reflected = reflected * cotangent + terms[i];
    return (order % 2 ? -value : value) - reflected;
}

// ------------------------------------------------------------------------------------------------- reductions

struct Sum {
    template <class T> static __device__ __forceinline__ T none() { return T(0); }
    template <class T> static __device__ __forceinline__ T both(T a, T b) { return a + b; }
};

struct Largest {
    template <class T> static __device__ __forceinline__ T none() { return T(bits_as<float>(0xff800000u)); }
    template <class T> static __device__ __forceinline__ T both(T a, T b) { return larger(a, b); }
};

struct Smallest {
    template <class T> static __device__ __forceinline__ T none() { return T(bits_as<float>(0x7f800000u)); }
    template <class T> static __device__ __forceinline__ T both(T a, T b) { return smaller(a, b); }
};

struct Product {
    template <class T> static __device__ __forceinline__ T none() { return T(1); }
    template <class T> static __device__ __forceinline__ T both(T a, T b) { return a * b; }
};

// Of what each of `threads` side by side has, for all of them. `shared` has room for a number of each warp, twice.
template <class Kind, int threads, class T> __device__ __forceinline__ T across(T number, T* shared, int& turn) {
    #pragma unroll
    for (int distance = (threads < 32 ? threads : 32) / 2; distance; distance /= 2)
        number = Kind::both(number, __shfl_xor_sync(0xffffffffu, number, distance));
    if constexpr (threads > 32) {
        const int warps = threads / 32;
        T* places = shared + warps * (turn++ & 1);  // in turns, so that one barrier is enough
        if (threadIdx.x % 32 == 0) places[threadIdx.x / 32] = number;
        __syncthreads();
        number = Kind::template none<T>();
        #pragma unroll
        for (int warp = 0; warp < warps; ++warp) number = Kind::both(number, places[warp]);
    }
    return number;
}

// --------------------------------------------------------------------------------------------- random numbers

struct Words { unsigned at[4]; };

// Philox4x32-10 of J. K. Salmon and others, Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
__device__ __forceinline__ Words philox(Words counter, unsigned low, unsigned high) {
    #pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned long long a = 0xd2511f53ull * counter.at[0], b = 0xcd9e8d57ull * counter.at[2];
        counter = Words{{(unsigned)(b >> 32) ^ counter.at[1] ^ low, (unsigned)b,
                         (unsigned)(a >> 32) ^ counter.at[3] ^ high, (unsigned)a}};
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
    return counter;
}

// Four words of the stream of a key.
__device__ __forceinline__ Words drawn(unsigned long long key, unsigned long long place) {
    return philox(Words{{(unsigned)place, (unsigned)(place >> 32), 0u, 0u}}, (unsigned)key, (unsigned)(key >> 32));
}

// The highest 24 bits of a word as a number from 0 to 1, which it is below.
__device__ __forceinline__ float uniform(unsigned word) { return (word >> 8) * 5.9604644775390625e-8f; }

// The word of an element's place, for an index that is not known when the code is compiled.
__device__ __forceinline__ unsigned word_of(const Words& words, unsigned index) {
    const unsigned low = index & 1u ? words.at[1] : words.at[0], high = index & 1u ? words.at[3] : words.at[2];
    return index & 2u ? high : low;
}
