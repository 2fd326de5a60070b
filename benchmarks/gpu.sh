#!/usr/bin/env bash
# All that only a GPU can tell, in one go and in under ten minutes: the questions, the benchmark beside PyTorch and JAX
# and what the cost model expects, the tests marked `gpu`, those of the stand-in on the real thing, compute-sanitizer.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
    cat <<'TEXT'
usage: benchmarks/gpu.sh [--dry] [FOLDER]

  --dry    walk through all of it on a stand-in for a GPU at tiny sizes: no time of it means anything
  FOLDER   where the results go, Markdown and JSON: $OUT, or else gpu-results

KERNELS names a folder of kernels that `python -m benchmarks.gpu_kernels FOLDER` compiled on any machine, gpu-kernels if
nothing is said; where there is one it is CuPy's cache.

PYTHON names the interpreter. Where it has no CuPy an environment is made in .venv-gpu; where that cannot be had, what
needs it says so, and the rest goes on.
TEXT
}

device=gpu
out=${OUT:-gpu-results}
kernels=${KERNELS:-gpu-kernels}
for word in "$@"; do
    case $word in
        --dry) device=dry ;;
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; exit 2 ;;
        *) out=$word ;;
    esac
done

limit=575 # seconds for everything
mkdir -p "$out"
out=$(cd "$out" && pwd)
log=$out/log.txt
summary=$out/summary.md
: >"$log"

say() { printf '%s\n' "$*" | tee -a "$summary"; }

# stage NAME SECONDS COMMAND...: run it for as long as is left at most, and say how it ended.
stage() {
    local name=$1 seconds=$2 begin=$SECONDS status=0
    shift 2
    ((seconds > limit - SECONDS)) && seconds=$((limit - SECONDS))
    if ((seconds < 5)); then
        say "| $name | not run | no time was left |"
        return
    fi
    printf '\n===== %s: %s\n' "$name" "$*" >>"$log"
    timeout --signal=INT --kill-after=10 "$seconds" "$@" >"$out/stage.txt" 2>&1 || status=$?
    cat "$out/stage.txt" >>"$log"
    case $status in
        0) how='done' ;;
        124 | 130 | 137) how="stopped after $seconds s" ;;
        *) how="exit status $status" ;;
    esac
    say "| $name | $how, $((SECONDS - begin)) s | $(tail -n 1 "$out/stage.txt" | tr '|' '/' | cut -c 1-160) |"
}

# --------------------------------------------------------------------------------------------------- Python

python=${PYTHON:-python3}
has() { "$python" -c "import $1" >/dev/null 2>&1; }

if [[ $device == gpu ]] && ! has cupy; then
    cuda=cuda13
    nvidia-smi 2>/dev/null | grep -q 'CUDA Version: 12' && cuda=cuda12
    "$python" -m venv --system-site-packages .venv-gpu >>"$log" 2>&1 &&
        timeout 120 .venv-gpu/bin/python -m pip install --quiet --disable-pip-version-check \
            --editable ".[$cuda,test]" >>"$log" 2>&1
    [[ -x .venv-gpu/bin/python ]] && python=.venv-gpu/bin/python
fi
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1 BENCHMARK_DEVICE=$device XLA_PYTHON_CLIENT_PREALLOCATE=false

{
    echo "# Measurements on a GPU"
    echo
    [[ $device == dry ]] && echo "**A stand-in for a GPU at tiny sizes: no time here means anything.**" && echo
    echo "$(date -u +%F), \`benchmarks/gpu.sh $*\`, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)."
    echo
    echo '```'
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv 2>/dev/null || echo "nvidia-smi is not there"
    nvcc --version 2>/dev/null | tail -n 2 || echo "nvcc is not there"
    "$python" --version
    for name in cupy torch jax cudnn pytest xdist; do
        "$python" -c "import $name; print('$name', getattr($name, '__version__', ''))" 2>/dev/null ||
            echo "$name is not there"
    done
    echo '```'
    echo
    echo "| stage | how it ended | its last line |"
    echo "|---|---|---|"
} >"$summary" 2>&1
cat "$summary"

# --------------------------------------------------------------------------------------------------- stages

rm -f "$out"/{machine,performance,device_properties}.json
if [[ $device == gpu && -d $kernels ]]; then
    CUPY_CACHE_DIR=$(cd "$kernels" && pwd)
    export CUPY_CACHE_DIR
    stage "kernels compiled before" 30 "$python" -m benchmarks.gpu_kernels "$CUPY_CACHE_DIR" --here
fi
stage "questions (a) to (f)" 140 "$python" -m benchmarks.gpu_questions a b c d e f --out "$out"

measure=("$python" -m benchmarks --device "$device" --here --out "$out")
[[ -f $out/machine.json ]] && measure+=(--machine "$out/machine.json")
if [[ $device == gpu ]]; then
    stage benchmark 200 "${measure[@]}" --rounds 3 --seconds 0.1 --budget 160 --limit 60
else
    stage benchmark 200 "${measure[@]}" --rounds 1 --seconds 0.01 --columns opreg PyTorch JAX --limit 30
fi

workers=(-n0)
has xdist && [[ $device == gpu ]] && workers=(-n 8)
test=("$python" -m pytest -q "${workers[@]}" -p no:cacheprovider --tb=short -rfE)
if [[ $device == gpu ]]; then
    stage "tests marked gpu" 130 "${test[@]}" -m gpu \
        tests/backends/cuda/test_{gpu,strict}.py tests/core/test_context.py tests/symbol/test_models.py \
        tests/builtin/test_oracle.py
    cp "$out/stage.txt" "$out/tests.txt"
    # The tests of test_gpu.py ran above. Tests that read counters of the stand-in cannot run on a GPU.
    mapfile -t files < <(grep -rlE --include='test_*.py' '\bgpus\b' tests | grep -v test_gpu.py)
    OPREG_TEST_GPU=real stage "the stand-in's tests on the GPU" 60 \
        "${test[@]}" -m 'stand_in and not simulated' "${files[@]}"
    cat "$out/stage.txt" >>"$out/tests.txt"
else
    stage "tests of what is marked gpu, on the stand-in" 130 "${test[@]}" -m 'not gpu' \
        tests/backends/cuda/test_gpu.py
    cp "$out/stage.txt" "$out/tests.txt"
fi

stage "question (g), compute-sanitizer" 130 "$python" -m benchmarks.gpu_questions g --out "$out"

rm -f "$out/stage.txt"
say ""
say "It took $SECONDS s."
for part in questions-abcdef questions-g performance; do
    if [[ -f $out/$part.md ]]; then
        printf '\n## %s\n\n%s\n' "$part" "$(<"$out/$part.md")" >>"$summary"
        rm "$out/$part.md"
    fi
done
exit 0
