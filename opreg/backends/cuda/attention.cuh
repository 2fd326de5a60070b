// Attention on tensor cores without an array of scores. The text before this file defines the types Stored, Factor and
// Mask, and the constants SIZE, FEATURES, PARTS, TILE, TALL, MASK, FILLED, CAUSAL, DROPS and IS_HALF; behind it
// stands the text of a kernel, ``attention_result.cuh``, ``attention_query.cuh`` or ``attention_key.cuh``.
//
// A warp multiplies 16 rows by 8 columns of 16-bit factors. Factors of float32 are sums of PARTS numbers of bfloat16, each
// the upper bits of what the ones before leave; products of two parts that are too small to count are left out.
// T. Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, arXiv:2307.08691.

constexpr int THREADS = 128;
constexpr float LOG2E = 1.4426950408889634f;
constexpr unsigned ALL = 0xffffffffu;

struct Four { unsigned at[4]; };
struct Two { unsigned at[2]; };
struct Left { Four part[PARTS]; };    // 16 rows and 16 columns of a left factor: what a thread of the warp has of them
struct Right { Two part[PARTS]; };    // 16 rows and 8 columns of a right factor
struct Sums { float at[4]; };         // 16 rows and 8 columns of a product

__device__ __forceinline__ int group() { return threadIdx.x % 32 / 4; }
__device__ __forceinline__ int place() { return threadIdx.x % 4; }

__device__ __forceinline__ void multiply(Sums& sums, const Four& a, const Two& b) {
#ifdef __CUDA_ARCH__
    if constexpr (IS_HALF)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
            : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b.at[0]), "r"(b.at[1]));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
            : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b.at[0]), "r"(b.at[1]));
#else
    float rows[2][16], columns[2][16];
    for (int other = 0; other < 4; ++other) {
        const Four shown = __shfl_sync(ALL, a, group() * 4 + other);
        for (int word = 0; word < 4; ++word) {
            const auto pair = bits_as<Pack<Factor, 2>>(shown.at[word]);
            for (int i = 0; i < 2; ++i) rows[word % 2][other * 2 + word / 2 * 8 + i] = wide(pair.at[i]);
        }
        for (int column = 0; column < 2; ++column) {
            const Two seen = __shfl_sync(ALL, b, (place() * 2 + column) * 4 + other);
            for (int word = 0; word < 2; ++word) {
                const auto pair = bits_as<Pack<Factor, 2>>(seen.at[word]);
                for (int i = 0; i < 2; ++i) columns[column][other * 2 + word * 8 + i] = wide(pair.at[i]);
            }
        }
    }
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 16; ++k) sums.at[i] += rows[i / 2][k] * columns[i % 2][k];
#endif
}

__device__ __forceinline__ void multiply(Sums& sums, const Left& a, const Right& b) {
    #pragma unroll
    for (int total = PARTS - 1; total >= 0; --total)  // the smallest products first
        #pragma unroll
        for (int i = 0; i <= total; ++i) multiply(sums, a.part[i], b.part[total - i]);
}

// The parts of a number: their sum is the number, but for what lies below the last one.
__device__ __forceinline__ void divide(float number, Factor (&parts)[PARTS]) {
    if constexpr (PARTS == 1) parts[0] = narrow<Factor>(number);
    else {
        #pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            const unsigned bits = bits_as<unsigned>(number);
            const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
            // The last part is rounded; the upper bits of a NaN alone may be those of an infinity.
            parts[part] = bits_as<Factor>((Bits)(finite && part < PARTS - 1 ? bits >> 16 : narrow<BFloat>(number).bits));
            number = finite ? number - bits_as<float>(bits & 0xffff0000u) : 0.0f;
        }
    }
}

// Two neighbours of a row, as one word of each part.
__device__ __forceinline__ void pair(float first, float second, Left& left, int word) {
    Factor a[PARTS], b[PARTS];
    divide(first, a);
    divide(second, b);
    #pragma unroll
    for (int part = 0; part < PARTS; ++part) left.part[part].at[word] = bits_as<unsigned>(Pack<Factor, 2>{{a[part], b[part]}});
}

// Two neighbouring products as a left factor.
__device__ __forceinline__ Left left_of(const Sums& first, const Sums& second) {
    Left left;
    pair(first.at[0], first.at[1], left, 0);
    pair(first.at[2], first.at[3], left, 1);
    pair(second.at[0], second.at[1], left, 2);
    pair(second.at[2], second.at[3], left, 3);
    return left;
}

// Rows of an array: where they begin, the distance from one to the next, and how many there are.
struct Matrix {
    const Stored* at;
    long long step;
    int rows, columns;
};

// A left factor from memory; zeros outside of the matrix.
__device__ __forceinline__ Left left_at(const Matrix& from, int row, int column) {
    Left left;
    #pragma unroll
    for (int word = 0; word < 4; ++word) {
        const int r = row + group() + word % 2 * 8, c = column + place() * 2 + word / 2 * 8;
        float numbers[2] = {0.0f, 0.0f};
        if (r < from.rows && c < from.columns) {
            const auto found = load<2>(from.at + r * from.step + c);
            numbers[0] = wide(found.at[0]), numbers[1] = wide(found.at[1]);
        }
        pair(numbers[0], numbers[1], left, word);
    }
    return left;
}

// Rows of a matrix in shared memory, TILE of them, for each part. The eight numbers behind each row let the threads of a
// warp read different banks.
template <int width> struct Rows {
    static constexpr int step = width + 8, part = TILE * step;

    // All threads of a block fetch the rows; zeros stand for those that the matrix has not.
    static __device__ __forceinline__ void fetch(Factor* tile, const Matrix& from, int first) {
        constexpr int many = 16 / sizeof(Stored);
        for (int i = threadIdx.x; i < TILE * (width / many); i += THREADS) {
            const int row = i / (width / many), column = i % (width / many) * many;
            Pack<Stored, many> numbers = {};
            if (first + row < from.rows && column < from.columns)
                numbers = load<many>(from.at + (first + row) * from.step + column);
            Pack<Factor, many> packs[PARTS];
            #pragma unroll
            for (int lane = 0; lane < many; ++lane) {
                Factor parts[PARTS];
                divide(wide(numbers.at[lane]), parts);
                #pragma unroll
                for (int p = 0; p < PARTS; ++p) packs[p].at[lane] = parts[p];
            }
            #pragma unroll
            for (int p = 0; p < PARTS; ++p) store(tile + p * part + row * step + column, packs[p]);
        }
    }

    // The right factor whose columns are rows of the tile.
    static __device__ __forceinline__ Right across(const Factor* tile, int column, int row) {
        Right right;
        #pragma unroll
        for (int p = 0; p < PARTS; ++p)
            #pragma unroll
            for (int word = 0; word < 2; ++word)
                right.part[p].at[word] = bits_as<unsigned>(
                    load<2>(tile + p * part + (column + group()) * step + row + place() * 2 + word * 8));
        return right;
    }

    // Two neighbouring right factors whose rows are rows of the tile.
    static __device__ __forceinline__ void along(const Factor* tile, int row, int column, Right (&right)[2]) {
        #pragma unroll
        for (int p = 0; p < PARTS; ++p) {
#ifdef __CUDA_ARCH__
            const int lane = threadIdx.x % 32;
            const unsigned from = (unsigned)__cvta_generic_to_shared(
                tile + p * part + (row + lane % 16) * step + column + lane / 16 * 8);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                : "=r"(right[0].part[p].at[0]), "=r"(right[0].part[p].at[1]), "=r"(right[1].part[p].at[0]),
                  "=r"(right[1].part[p].at[1]) : "r"(from) : "memory");
#else
            for (int half = 0; half < 2; ++half)
                for (int word = 0; word < 2; ++word) {
                    const Factor* from = tile + p * part + (row + word * 8 + place() * 2) * step + column + half * 8 + group();
                    right[half].part[p].at[word] = bits_as<unsigned>(Pack<Factor, 2>{{from[0], from[step]}});
                }
#endif
        }
    }
};

__device__ __forceinline__ unsigned mixed(unsigned x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

// What a mask of truths or of terms says of a score.
__device__ __forceinline__ bool hides(unsigned char truth) { return !truth; }
template <class Term> __device__ __forceinline__ bool hides(Term) { return false; }
__device__ __forceinline__ float term(unsigned char) { return 0.0f; }
template <class Term> __device__ __forceinline__ float term(Term number) { return wide(number); }

// What holds for the scores of one head: masks, and dropout.
struct Rules {
    const Mask* mask;
    long long mask_row, mask_column;
    const float* fill;
    unsigned first_row, row_key, column_key, threshold;
    float scale, factor;
    int queries, keys;

    // A score by the product of its query and key, times the logarithm of e to the base 2.
    __device__ __forceinline__ float score(float product, int row, int column) const {
        if (row >= queries || column >= keys || (CAUSAL && column > row)) return bits_as<float>(0xff800000u);
        float found = product * scale;
        if constexpr (MASK == 2) found += term(mask[row * mask_row + column * mask_column]);
        if constexpr (MASK == 1)
            if (hidden(row, column)) found = FILLED ? fill[row] : bits_as<float>(0xff800000u);
        return found * LOG2E;
    }

    // Whether a mask of truths hides a key.
    __device__ __forceinline__ bool hidden(int row, int column) const {
        return MASK == 1 && row < queries && column < keys && hides(mask[row * mask_row + column * mask_column]);
    }

    // The factor of dropout for a weight; see ``attention_scores.dropout_factors``.
    __device__ __forceinline__ float multiple(int row, int column) const {
        if constexpr (!DROPS) return 1.0f;
        const unsigned a = mixed((first_row + row) * 0x9e3779b1u + row_key), b = mixed(column * 0x85ebca77u + column_key);
        return mixed(a + b) >> 8 < threshold ? factor : 0.0f;
    }
};

#define PLACES(name) const Stored* name, long long name##_batch, long long name##_head, long long name##_row
#define MATRIX(name, head_number, rows, columns) \
    Matrix{name + batch * name##_batch + (head_number) * name##_head, name##_row, rows, columns}
#define RULES const Mask* mask, long long mask_batch, long long mask_head, long long mask_row, long long mask_column, \
    const float* fill, const int* draw, unsigned threshold, float factor, float scale, int heads, int many, int queries, \
    int keys, int size, int features

// The rules of a head.
#define RULES_OF(head) Rules{mask + batch * mask_batch + (head) * mask_head, mask_row, mask_column, \
    fill + (batch * heads + (head)) * queries, (unsigned)((batch * heads + (head)) * queries), \
    DROPS ? (unsigned)draw[0] : 0u, DROPS ? (unsigned)draw[1] : 0u, DROPS && draw[2] ? threshold : 1u << 24, scale, \
    DROPS && draw[2] ? factor : 1.0f, queries, keys}

// Numbers of a row of a product, for both rows that a thread has.
template <int count> __device__ __forceinline__ void write(Stored* out, const Sums (&sums)[count], int first, int rows,
                                                           int columns, float scale) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = first + group() + i * 8;
        if (row >= rows) continue;
        #pragma unroll
        for (int column = 0; column < count; ++column) {
            const int at = column * 8 + place() * 2;
            if (at < columns)
                store(out + (long long)row * columns + at, Pack<Stored, 2>{{
                    narrow<Stored>(sums[column].at[i * 2] * scale), narrow<Stored>(sums[column].at[i * 2 + 1] * scale)}});
        }
    }
}

// Adds the product of a left factor and the rows of a tile from this one on.
template <int width> __device__ __forceinline__ void add(Sums (&sums)[width / 8], const Left& left, const Factor* tile,
                                                         int row) {
    #pragma unroll
    for (int column = 0; column < width / 16; ++column) {
        Right right[2];
        Rows<width>::along(tile, row, column * 16, right);
        multiply(sums[column * 2], left, right[0]);
        multiply(sums[column * 2 + 1], left, right[1]);
    }
}

// Products of left factors and the rows of a tile, these as columns.
template <int width> __device__ __forceinline__ Sums products(const Left (&left)[width / 16], const Factor* tile, int column) {
    Sums sums = {};
    #pragma unroll
    for (int i = 0; i < width / 16; ++i) multiply(sums, left[i], Rows<width>::across(tile, column, i * 16));
    return sums;
}
