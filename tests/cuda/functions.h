// C's functions of numbers with an overload for each type, as `<cmath>` has them: that one takes a third of the time in
// which a small kernel is compiled.
#pragma once
#define FUNCTION(name)                                       \
    extern "C" double name(double) noexcept;                 \
    extern "C" float name##f(float) noexcept;                \
    inline float name(float x) { return name##f(x); }        \
    template <class T> double name(T x) { return name(double(x)); }
FUNCTION(exp) FUNCTION(exp2) FUNCTION(expm1) FUNCTION(log) FUNCTION(log1p) FUNCTION(log2) FUNCTION(log10)
FUNCTION(sqrt) FUNCTION(cbrt) FUNCTION(fabs) FUNCTION(floor) FUNCTION(ceil) FUNCTION(trunc) FUNCTION(round)
FUNCTION(rint) FUNCTION(nearbyint)
FUNCTION(sin) FUNCTION(cos) FUNCTION(tan) FUNCTION(asin) FUNCTION(acos) FUNCTION(atan)
FUNCTION(sinh) FUNCTION(cosh) FUNCTION(tanh) FUNCTION(asinh) FUNCTION(acosh) FUNCTION(atanh)
FUNCTION(erf) FUNCTION(erfc) FUNCTION(tgamma) FUNCTION(lgamma)
#undef FUNCTION

#define FUNCTION(name)                                                       \
    extern "C" double name(double, double) noexcept;                         \
    extern "C" float name##f(float, float) noexcept;                         \
    inline float name(float x, float y) { return name##f(x, y); }            \
    template <class A, class B> double name(A x, B y) { return name(double(x), double(y)); }
FUNCTION(pow) FUNCTION(fmod) FUNCTION(hypot) FUNCTION(atan2) FUNCTION(copysign) FUNCTION(fmax) FUNCTION(fmin)
#undef FUNCTION

extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float ldexp(float x, int exponent) { return ldexpf(x, exponent); }
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
inline float frexp(float x, int* exponent) { return frexpf(x, exponent); }

template <class T> bool isnan(T x) { return __builtin_isnan(x); }
template <class T> bool isinf(T x) { return __builtin_isinf(x); }
template <class T> bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> bool signbit(T x) { return __builtin_signbit(x); }

#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define HUGE_VAL __builtin_huge_val()
#define M_PI 3.14159265358979323846
