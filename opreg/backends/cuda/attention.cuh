// Attention on tensor cores without an array of scores. The text before this file defines the types Stored, Factor and
// Mask, and the constants SIZE, FEATURES, PARTS, TILE, TALL, MASK, FILLED, CAUSAL, DROPS, IS_HALF and PASS: 0 for
// the result, 1 for the gradient of queries, 2 for those of keys and values.
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

    // The factor of dropout for a weight; see ``scaled_attention._multiples``.
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

#if PASS == 0

constexpr int BLOCK = 64 * TALL;  // rows of a block: each of its four warps has TALL times 16
constexpr float LN2 = 0.6931471805599453f;

extern "C" __global__ void __launch_bounds__(128) attention(
    PLACES(query), PLACES(key), PLACES(value), RULES, Stored* out, float* logsum) {
    __shared__ Pack<Factor, 8> key_memory[PARTS * Rows<SIZE>::part / 8];
    Factor* const key_tile = key_memory->at;
    __shared__ Pack<Factor, 8> value_memory[PARTS * Rows<FEATURES>::part / 8];
    Factor* const value_tile = value_memory->at;
    const int blocks = (queries + BLOCK - 1) / BLOCK;
    const int block = blocks - 1 - blockIdx.x % blocks;  // with a causal mask the longest first
    const long long both = blockIdx.x / blocks, batch = both / heads, head = both % heads;
    const Matrix q = MATRIX(query, head, queries, size), k = MATRIX(key, head / many, keys, size),
                 v = MATRIX(value, head / many, keys, features);
    const Rules rules = RULES_OF(head);
    const int first = block * BLOCK + threadIdx.x / 32 * 16 * TALL;
    Left left[TALL][SIZE / 16];
    Sums sums[TALL][FEATURES / 8];
    float top[TALL][2], total[TALL][2];
    #pragma unroll
    for (int tall = 0; tall < TALL; ++tall) {
        #pragma unroll
        for (int i = 0; i < SIZE / 16; ++i) left[tall][i] = left_at(q, first + tall * 16, i * 16);
        #pragma unroll
        for (int i = 0; i < FEATURES / 8; ++i) sums[tall][i] = Sums{};
        #pragma unroll
        for (int i = 0; i < 2; ++i) top[tall][i] = bits_as<float>(0xff800000u), total[tall][i] = 0.0f;
    }
    const int end = CAUSAL && keys > (block + 1) * BLOCK ? (block + 1) * BLOCK : keys;
    for (int begin = 0; begin < end; begin += TILE) {
        Rows<SIZE>::fetch(key_tile, k, begin);
        Rows<FEATURES>::fetch(value_tile, v, begin);
        __syncthreads();
        Sums scores[TALL][TILE / 8];
        #pragma unroll
        for (int column = 0; column < TILE / 8; ++column) {
            #pragma unroll
            for (int tall = 0; tall < TALL; ++tall) scores[tall][column] = Sums{};
            #pragma unroll
            for (int i = 0; i < SIZE / 16; ++i) {
                const Right right = Rows<SIZE>::across(key_tile, column * 8, i * 16);
                #pragma unroll
                for (int tall = 0; tall < TALL; ++tall) multiply(scores[tall][column], left[tall][i], right);
            }
        }
        #pragma unroll
        for (int tall = 0; tall < TALL; ++tall) {
            #pragma unroll
            for (int i = 0; i < 2; ++i) {  // rows of this thread: its group's, and the one eight further down
                const int row = first + tall * 16 + group() + i * 8;
                float largest = top[tall][i];
                #pragma unroll
                for (int column = 0; column < TILE / 8; ++column)
                    #pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        float& score = scores[tall][column].at[i * 2 + j];
                        score = rules.score(score, row, begin + column * 8 + place() * 2 + j);
                        largest = fmaxf(largest, score);
                    }
                largest = fmaxf(largest, __shfl_xor_sync(ALL, largest, 1));
                largest = fmaxf(largest, __shfl_xor_sync(ALL, largest, 2));
                const float base = largest == bits_as<float>(0xff800000u) ? 0.0f : largest;
                const float shrunk = exp2f(top[tall][i] - base);
                top[tall][i] = largest;
                total[tall][i] *= shrunk;
                #pragma unroll
                for (int column = 0; column < FEATURES / 8; ++column)
                    #pragma unroll
                    for (int j = 0; j < 2; ++j) sums[tall][column].at[i * 2 + j] *= shrunk;
                #pragma unroll
                for (int column = 0; column < TILE / 8; ++column)
                    #pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        float& weight = scores[tall][column].at[i * 2 + j];
                        weight = exp2f(weight - base);
                        total[tall][i] += weight;
                        weight *= rules.multiple(row, begin + column * 8 + place() * 2 + j);
                    }
            }
        }
        #pragma unroll
        for (int i = 0; i < TILE / 16; ++i) {
            Left weights[TALL];
            #pragma unroll
            for (int tall = 0; tall < TALL; ++tall) weights[tall] = left_of(scores[tall][2 * i], scores[tall][2 * i + 1]);
            #pragma unroll
            for (int column = 0; column < FEATURES / 16; ++column) {
                Right right[2];
                Rows<FEATURES>::along(value_tile, i * 16, column * 16, right);
                #pragma unroll
                for (int tall = 0; tall < TALL; ++tall)
                    #pragma unroll
                    for (int half = 0; half < 2; ++half)
                        multiply(sums[tall][column * 2 + half], weights[tall], right[half]);
            }
        }
        __syncthreads();
    }
    #pragma unroll
    for (int tall = 0; tall < TALL; ++tall)
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = first + tall * 16 + group() + i * 8;
            float whole = total[tall][i];
            whole += __shfl_xor_sync(ALL, whole, 1);
            whole += __shfl_xor_sync(ALL, whole, 2);
            if (row >= queries) continue;
            const long long at = both * queries + row;
            if (place() == 0) logsum[at] = (log2f(whole) + top[tall][i]) * LN2;
            #pragma unroll
            for (int column = 0; column < FEATURES / 8; ++column) {
                const int feature = column * 8 + place() * 2;
                if (feature < features)
                    store(out + at * features + feature, Pack<Stored, 2>{{
                        narrow<Stored>(sums[tall][column].at[i * 2] / whole),
                        narrow<Stored>(sums[tall][column].at[i * 2 + 1] / whole)}});
            }
        }
}

#else

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

#if PASS == 1

extern "C" __global__ void __launch_bounds__(128) attention_query(
    PLACES(g), PLACES(query), PLACES(key), PLACES(value), RULES, const float* logsum, const float* delta, Stored* d_query) {
    __shared__ Pack<Factor, 8> key_memory[PARTS * Rows<SIZE>::part / 8];
    Factor* const key_tile = key_memory->at;
    __shared__ Pack<Factor, 8> value_memory[PARTS * Rows<FEATURES>::part / 8];
    Factor* const value_tile = value_memory->at;
    const int blocks = (queries + 63) / 64, block = blocks - 1 - blockIdx.x % blocks;
    const long long both = blockIdx.x / blocks, batch = both / heads, head = both % heads;
    const Matrix q = MATRIX(query, head, queries, size), k = MATRIX(key, head / many, keys, size),
                 v = MATRIX(value, head / many, keys, features), slope = MATRIX(g, head, queries, features);
    const Rules rules = RULES_OF(head);
    const int first = block * 64 + threadIdx.x / 32 * 16;
    Left left[SIZE / 16], slopes[FEATURES / 16];
    Sums sums[SIZE / 8];
    #pragma unroll
    for (int i = 0; i < SIZE / 16; ++i) left[i] = left_at(q, first, i * 16), sums[2 * i] = sums[2 * i + 1] = Sums{};
    #pragma unroll
    for (int i = 0; i < FEATURES / 16; ++i) slopes[i] = left_at(slope, first, i * 16);
    float logs[2], deltas[2];
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = first + group() + i * 8;
        logs[i] = row < queries ? logsum[both * queries + row] * LOG2E : 0.0f;
        deltas[i] = row < queries ? delta[both * queries + row] : 0.0f;
    }
    const int end = CAUSAL && keys > (block + 1) * 64 ? (block + 1) * 64 : keys;
    for (int begin = 0; begin < end; begin += TILE) {
        Rows<SIZE>::fetch(key_tile, k, begin);
        Rows<FEATURES>::fetch(value_tile, v, begin);
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < TILE / 16; ++i) {
            Sums both_scores[2];
            #pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int column = i * 16 + half * 8;
                const Sums products_of = products<SIZE>(left, key_tile, column);
                const Sums weights = products<FEATURES>(slopes, value_tile, column);
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int row = first + group() + j / 2 * 8, at = begin + column + place() * 2 + j % 2;
                    const float weight = exp2f(rules.score(products_of.at[j], row, at) - logs[j / 2]);
                    const float d_score = weight * (weights.at[j] * rules.multiple(row, at) - deltas[j / 2]);
                    both_scores[half].at[j] = FILLED && rules.hidden(row, at) ? 0.0f : d_score;
                }
            }
            add<SIZE>(sums, left_of(both_scores[0], both_scores[1]), key_tile, i * 16);
        }
        __syncthreads();
    }
    write(d_query + both * queries * size, sums, first, queries, size, scale);
}

#else

extern "C" __global__ void __launch_bounds__(128) attention_key(
    PLACES(g), PLACES(query), PLACES(key), PLACES(value), RULES, const float* logsum, const float* delta, Stored* d_key,
    Stored* d_value) {
    __shared__ Pack<Factor, 8> query_memory[PARTS * Rows<SIZE>::part / 8];
    Factor* const query_tile = query_memory->at;
    __shared__ Pack<Factor, 8> slope_memory[PARTS * Rows<FEATURES>::part / 8];
    Factor* const slope_tile = slope_memory->at;
    __shared__ float logs[TILE], deltas[TILE];
    const int blocks = (keys + 63) / 64, block = blockIdx.x % blocks;
    const long long both = blockIdx.x / blocks, batch = both / (heads / many), shared = both % (heads / many);
    const Matrix k = MATRIX(key, shared, keys, size), v = MATRIX(value, shared, keys, features);
    const int first = block * 64 + threadIdx.x / 32 * 16;
    Left left[SIZE / 16], values[FEATURES / 16];
    Sums of_key[SIZE / 8], of_value[FEATURES / 8];
    #pragma unroll
    for (int i = 0; i < SIZE / 16; ++i) left[i] = left_at(k, first, i * 16), of_key[2 * i] = of_key[2 * i + 1] = Sums{};
    #pragma unroll
    for (int i = 0; i < FEATURES / 16; ++i)
        values[i] = left_at(v, first, i * 16), of_value[2 * i] = of_value[2 * i + 1] = Sums{};
    for (int head = (int)shared * many; head < ((int)shared + 1) * many; ++head) {
        const Matrix q = MATRIX(query, head, queries, size), slope = MATRIX(g, head, queries, features);
        const Rules rules = RULES_OF(head);
        const long long from = (batch * heads + head) * queries;
        for (int begin = CAUSAL ? block * 64 / TILE * TILE : 0; begin < queries; begin += TILE) {
            Rows<SIZE>::fetch(query_tile, q, begin);
            Rows<FEATURES>::fetch(slope_tile, slope, begin);
            for (int i = threadIdx.x; i < TILE; i += THREADS) {
                const bool inside = begin + i < queries;
                logs[i] = inside ? logsum[from + begin + i] * LOG2E : 0.0f;
                deltas[i] = inside ? delta[from + begin + i] : 0.0f;
            }
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < TILE / 16; ++i) {
                Sums weights[2], d_scores[2];
                #pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int column = i * 16 + half * 8;
                    const Sums products_of = products<SIZE>(left, query_tile, column);
                    const Sums d_weights = products<FEATURES>(values, slope_tile, column);
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int at = column + place() * 2 + j % 2, row = begin + at, key_row = first + group() + j / 2 * 8;
                        const float weight = exp2f(rules.score(products_of.at[j], row, key_row) - logs[at]);
                        const float multiple = rules.multiple(row, key_row);
                        const float d_score = weight * (d_weights.at[j] * multiple - deltas[at]);
                        weights[half].at[j] = weight * multiple;
                        d_scores[half].at[j] = FILLED && rules.hidden(row, key_row) ? 0.0f : d_score;
                    }
                }
                add<FEATURES>(of_value, left_of(weights[0], weights[1]), slope_tile, i * 16);
                add<SIZE>(of_key, left_of(d_scores[0], d_scores[1]), query_tile, i * 16);
            }
            __syncthreads();
        }
    }
    write(d_key + both * keys * size, of_key, first, keys, size, scale);
    write(d_value + both * keys * features, of_value, first, keys, features, 1.0f);
}

#endif
#endif
