# What both builds of the kernels compile: by nvcc for devices (nvidia/), by the host's compiler on an emulated device (tests/gpu).
set(SERIN_CUDA_KERNELS
    attention.cu attention_present.cu attention_tiles.cu chain_interpreted.cu chain_kernels.cu compact.cu conv.cu conv_depthwise.cu conv_finish.cu conv_transpose.cu cum_sum.cu gather.cu group_norm.cu
    lines.cu matmul.cu movement.cu nbits.cu norm.cu pointwise.cu pool.cu quant_conv.cu quant_matmul.cu quant_rows.cu recurrent.cu reduce.cu resize.cu
    rotary_embedding.cu sampling.cu scatter.cu suppression.cu top_k.cu transpose.cu)
list(TRANSFORM SERIN_CUDA_KERNELS PREPEND ${CMAKE_SOURCE_DIR}/kernels/cuda/)
