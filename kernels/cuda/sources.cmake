# What both builds of the kernels compile: by nvcc for devices (nvidia/), by the host's compiler on an emulated device (tests/gpu).
#
# Each line is a batch. A build that is made for tests compiles its sources together: most of their time goes to headers that all of them include. So
# sources of one batch do not give the same name to different things; the compiler says where they do, and then one of them moves to another line.
set(SERIN_CUDA_BATCHES
    "attention_tiles norm pointwise top_k"
    "conv recurrent rotary_embedding scatter transpose"
    "attention matmul pool reduce resize"
    "quant_rows conv_finish conv_patches group_norm sampling"
    "cast conv_transpose cum_sum gather lines movement"
    "quant_matmul attention_present compact conv_depthwise nbits"
    "chain_interpreted chain_kernels quant_conv suppression")

# Sets `sources` to the kernels' files: the batches where `batched` is true, else each file by itself. A batch ends in .cu as they do.
function(serin_cuda_sources sources batched)
  set(found "")
  set(number 0)
  foreach(batch IN LISTS SERIN_CUDA_BATCHES)
    string(REPLACE " " ";" names "${batch}")
    list(TRANSFORM names REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/kernels/cuda/\\1.cu" OUTPUT_VARIABLE files)
    if(batched)
      list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
      list(JOIN lines "" text)
      set(files ${CMAKE_CURRENT_BINARY_DIR}/batches/kernels_${number}.cu)
      file(CONFIGURE OUTPUT ${files} CONTENT "${text}" @ONLY)
      math(EXPR number "${number} + 1")
    endif()
    list(APPEND found ${files})
  endforeach()
  set(${sources} ${found} PARENT_SCOPE)
endfunction()
