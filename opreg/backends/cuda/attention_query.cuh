// The gradient of queries: a block holds its queries, and goes through keys and values tile by tile.

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
