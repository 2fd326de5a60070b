// The gradients of keys and values: a block holds its keys, and goes through queries tile by tile.

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
