// Attention: a block holds its queries, and goes through keys and values tile by tile.

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
