"""List descriptions in strangers' words, most of them from reports on GitHub, each with the problem to be found.

The problem must be among the first three. The site's tests use the list, too.
"""

QUERIES = (
    ("Getting out of hbm memory error on TPU", "hbm-out-of-memory"),
    ("A100 8 GPUs extremely slow compared to a single A100", "slower-on-more-devices"),
    ("Unable to see any speedup from multi-GPU training using JAX backend", "slower-on-more-devices"),
    ("my program is slower on 8 devices than on one", "slower-on-more-devices"),
    ("Sharding is much slower than pmap for while loops of varying length", "lockstep-loops"),
    ("for loops of different lengths which are being sharded over are slower than pmap", "lockstep-loops"),
    ("I followed the docs on the persistent compilation cache but I still do not get cache hits", "persistent-cache"),
    ("Every run recompiles from scratch, including reruns on the same machine with the same code", "persistent-cache"),
    ("Cache initialization fails when a JAX Array is created before enabling local cache", "cache-before-first-array"),
    ("Silent wrong results on 4 GPUs, correct on CPU and on one GPU", "differs-from-one-device"),
    ("SPMD partitioner drops a dynamic-update-slice whose start index needs clamping", "update-slice-dropped"),
    ("Using the array.at[].set() syntax is lowered to an all-gather operation", "scatter-gathers"),
    ("Cannot restore sharded array on different machine", "restore-other-devices"),
    ("can't restore the parameters on a new machine with a different number of devices", "restore-other-devices"),
    ("Checkpoints do not preserve AxisType.Explicit meshes", "restore-wrong-sharding"),
    ("host memory usage continually increasing during training, until the process is killed", "host-memory-grows"),
    ("Memory leaked over time when calling the same computation", "host-memory-grows"),
    ("Loss becomes NaN when training with multiple GPUs", "nan-only-when-sharded"),
    ("NaN only when sharded", "nan-only-when-sharded"),
    ("jax.random.normal values depend on the number of shards", "random-depends-on-sharding"),
    ("Inconsistent results when switching PRNG Implementation from threefry2x32 to rbg", "random-depends-on-sharding"),
    ("debug.print always all gathers data under GSPMD mode", "print-from-inside"),
    ("Print debugging not possible under pjit", "print-from-inside"),
    ("trouble understanding sharded gradient accumulate, reshapes the batches into microbatches", "microbatch-reshape"),
    ("Slurm initialization only supports one device per host", "slurm-one-gpu"),
    ("When using MaxText with slurm, our jobs only see one GPU per node", "slurm-one-gpu"),
    (
        "ssh into the node of a slurm job, error in initialize, only partially set SLURM_ env variables",
        "slurm-half-set",
    ),
    ("Multi-host job hangs forever when one rank is stuck", "multi-host-hang"),
    ("train.py hangs, no error and no warning", "multi-host-hang"),
    ("Failure in jax.distributed.initialize call", "initialize-timeout"),
    ("Multi-host crash: device_get on non-addressable arrays", "not-addressable"),
    ("'libtpu.so already in use' but actually not used", "tpu-in-use"),
    ("TPU not found on VM", "tpu-not-found"),
    ("Unable to use gpu: might be a jaxlib issue", "gpu-not-found"),
    ("Sharding unable to utilize all RAM/HBM, each shard is limited to half", "oom-at-initialisation"),
    ("OOM when initialising sharded params", "oom-at-initialisation"),
    ("Loud failures if donate_argnums does not work?", "donated-not-usable"),
    ("JIT+Shardmap+donate_argnums doesn't work", "donated-not-usable"),
    ("How do you remat GSPMD inserted all-gathers?", "fsdp-keeps-weights"),
    ("Unexplained all-gather in batched array shuffling", "unexpected-all-gather"),
    ("better error message for full remat", "full-rematerialization"),
    ("haliax layers under explicit mesh axes", "libraries-explicit"),
    ("Flax NNX model raises ShardingTypeError after upgrading jax", "libraries-explicit"),
    ("explicit-mesh loss sharding assert on the NNX path", "constraint-asserts"),
    ("allow pmap on CPUs: JAX on CPU only uses a single core", "emulated-slower"),
    ("pjit uses too much memory because of a closed-over array", "captured-constant"),
    ("Jit re-compiles with device_put(x, sharding)", "recompiles"),
    ("double compilation in train_step", "recompiles"),
    ("vmap of shard_map gathers the batch", "vmap-over-shard-map"),
    ("MEAN vs SUM of the loss over devices", "mean-of-means"),
    ("grad(psum(loss)) is wrong under pmap", "gradient-of-psum"),
    ("my gradients are 8 times too large in shard_map", "gradient-too-large"),
    ("timing says a matmul takes 30 microseconds", "timing-too-fast"),
    ("19 is not divisible by 4, sharding dimension must be divisible", "does-not-divide"),
    ("kernel died with a rendezvous timeout while training on emulated CPU devices", "rendezvous"),
    ("make_mesh default became Explicit and my code broke", "libraries-explicit"),
    ("MFU seems too low with causal attention", "mfu-and-causal-mask"),
    ("the second GPU process fails with out of memory", "gpu-out-of-memory"),
    ("jax.experimental.maps is gone, what replaces xmap", "row-2"),
    ("device_put_sharded was removed", "row-5"),
    # Reports of a second, independent set.
    (
        "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found for platform CUDA (you may need to uninstall the failing plugin package, or set JAX_PLATFORMS=cpu to skip this backend.)",
        "slurm-one-gpu",
    ),
    (
        "CUDA backend failed to initialize: jaxlib/cuda/versions_helpers.cc:90: operation gpuDeviceGetAttribute( &major, GPU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) failed: CUDA_ERROR_NOT_INITIALIZED (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)",
        "cuda-not-initialized",
    ),
    ("ValueError: cannot reshape array of size 2 into shape (1,64)", "restore-other-devices"),
    (
        "ValueError: Received incompatible devices for jitted computation. Got argument args[0] of broadcast_in_dim with shape float32[1] and device ids [0] on platform GPU and jit's context mesh with device ids [0, 1, 2, ..., 31] on platform GPU",
        "eager-on-the-context-mesh",
    ),
    (
        "ValueError: The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. Got spec=PartitionSpec('x',) and mesh=AbstractMesh('x': 2, axis_types=(Explicit,), device_kind=cpu, num_cores=None).",
        "constraint-on-other-axes",
    ),
    (
        "AssertionError: 'with_sharding_constraint' acts as an assert when all axes of mesh are of type 'explicit'. The array sharding: P('data', 'model') did not match the sharding provided: P('data', None). Please use 'jax.sharding.reshard' to shard your input to the sharding you want.",
        "constraint-asserts",
    ),
    (
        "ValueError: Resource axis: expert of PartitionSpec(('data', 'expert', 'model'), None) is not found in mesh: ('data', 'model').",
        "axis-not-in-mesh",
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to execute XLA Runtime executable: run time error: custom call 'xla.gpu.all_reduce' failed: external/xla/xla/service/gpu/nccl_utils.cc:133: NCCL operation ncclGetUniqueId(&id) failed: Unable to load NCCL library. Multi-GPU collectives will not work.",
        "nccl-missing",
    ),
    (
        "TypeError: while_loop body function carry input and carry output must have equal types, but they differ: The input carry component x[3][2] has type float32[] but the corresponding output carry component has type float32[]{V:i}, so the varying manual axes do not match.",
        "carry-starts-varying",
    ),
    (
        "TypeError: _psum_invariant_abstract_eval() got an unexpected keyword argument 'axis_index_groups'",
        "vmap-of-psum-bug",
    ),
    (
        "RuntimeError: Running operations on `Array`s that are not fully addressable by this process (i.e. `Array`s with data sharded across multiple devices and processes.) is dangerous.",
        "not-addressable",
    ),
    (
        "ShardingTypeError: sharding rule for scatter-add is not implemented. Please file a bug at https://github.com/jax-ml/jax/issues. You can work around this error by dropping that operation into full auto sharding mode via: `jax.experimental.shard.auto_axes(fun, out_shardings=...)`",
        "no-sharding-rule",
    ),
    (
        "One of pjit outputs was given the sharding of NamedSharding(mesh=Mesh('dp': 1, 'fsdp': 32, 'tp': 1, 'sp': 1), spec=PartitionSpec(('dp', 'fsdp'), 'sp'), memory_kind=device), which implies that the global size of its dimension 0 should be divisible by 32, but it is equal to 1 (full shape: (1, 130048))",
        "does-not-divide",
    ),
    (
        "ValueError: device_put's second argument must be a Device or a Sharding which represents addressable devices, but got NamedSharding(mesh=Mesh('data': 16, 'model': 8))",
        "device-put-across-processes",
    ),
    (
        "ValueError: Distributed system is not available; please initialize it via `jax.distributed.initialize()` at the start of your program.",
        "distributed-not-available",
    ),
    (
        'libtpu.so already in use by another process probably owned by another user. Run "$ sudo lsof -w /dev/accel0" to figure out which process is using the TPU. Not attempting to load libtpu.so in this process.',
        "tpu-in-use",
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 63.80G of 30.75G hbm. Exceeded hbm capacity by 33.05G.",
        "hbm-out-of-memory",
    ),
    (
        "UserWarning: There are not enough devices to run parallel chains: expected 2 but got 1. Chains will be drawn sequentially. If you are running MCMC in CPU, consider using `numpyro.set_host_device_count(2)` at the beginning of your program.",
        "devices-too-late",
    ),
    (
        "NotImplementedError: No replication rule for erf. As a workaround, pass the `check_rep=False` argument to `shard_map`.",
        "no-replication-rule",
    ),
    (
        "When using MaxText with slurm, our jobs only see one GPU per node because jax.distributed assumes one GPU per process when used with slurm",
        "slurm-one-gpu",
    ),
    (
        "I am using multiple GPUs for training by setting fsdp_devices=n and batch_size=8*n, but when actually training the speed only increases by 10%",
        "slower-on-more-devices",
    ),
    (
        "Sharding is much slower than pmap with a double while loop where the inner while loop may change in length over outer steps",
        "lockstep-loops",
    ),
    ("pjit is 2-3x slower than pmap in data parallelization mode!", "slower-than-pmap"),
    (
        "compilation cache is not written on any process that is not process index 0, but we don't keep the compilation cache directory on shared storage",
        "persistent-cache",
    ),
    ("JIT+Shardmap+donate_argnums doesn't work, while pmap+donate_argnums works.", "donated-not-usable"),
    (
        "When using sharding to distribute a large array over several devices, each shard is unable to utilize the entire device's RAM/HBM, it seems to be limited to about half that size",
        "oom-at-initialisation",
    ),
    (
        "jax.random.normal values depend on the number of shards: a draw appears fixed by shard index and index within shard",
        "random-depends-on-sharding",
    ),
    (
        "Training job hangs after saving checkpoint, it doesn't crash, Timeout was reached in curl operation, Operation too slow. Less than 1024 bytes/sec transferred the last 60 seconds",
        "storage-stalls",
    ),
    (
        "No explicit error, the job hangs indefinitely on resume: only one non-primary process blocks in XLA compilation waiting for the primary, which is still reading the checkpoint from S3",
        "waits-for-a-reader",
    ),
    (
        "A 2D array is sharded on axis 0; when performing FFT over the other axis the entire array is intermediately copied to each device",
        "fft-gathers",
    ),
    (
        "jax.device_put silently returns zeros when multiple slurm jobs are running on the same node",
        "gpu-copies-are-zeros",
    ),
    ("Wrong values on second GPU when distributing the data SPMD [Tesla K80]", "gpu-copies-are-zeros"),
    ("Operation very slow to compile since jax 0.4.36, takes hours instead of <2 minutes", "first-step-slow"),
    (
        "the train step compiles a second time after every process restart with optimizer state offloaded to pinned host memory",
        "recompiles",
    ),
    (
        "Under shard_map with check_vma=True, values coming back from an FFI call are reported as replicated although they are per-device, and lax.scan fails",
        "varying-types",
    ),
    (
        "Each time I run replay_state = buffer_add(replay_state, fake_batch) I can see the cpu memory doubling, although I donate the argument",
        "donated-not-usable",
    ),
    (
        "all ranks wait in sync_global_devices after checkpoint restore for hours with no error and no log output because one rank is stalled",
        "waits-for-a-reader",
    ),
    ("dropout greatly slows down data parallel training with jit, two devices are slower than one", "dropout-slow"),
)
