# SPDX-License-Identifier: MIT
#
# tulle_objects(<name> ISAS <list>)
#
# Compiles the library's sources as object libraries.  Sets, for the caller,
#   <name>_OBJECTS       the objects of all of them, for add_library()
#   <name>_DEFINITIONS   what they were compiled with, for tests that include internal headers
#   <name>_ISAS          the instruction sets that there are kernels for
# and TULLE_LIBRARIES, what they must be linked with.
#
# src/cpu/kernels.c and spmm_kernels.c become one object each for every ISA x value type x index type (24 with
# three ISAs; tests/check_fused.sh looks for multiply-adds in all of them); they see -DTL_ISA=avx2 -DTL_VAL=f64 -DTL_IDX=i32.  An ISA that this compiler or processor family does not
# know is left out, and TL_HAVE_AVX2, TL_HAVE_AVX512 say which are there.  What is embedded in the library
# (TulleKernels.cmake) is the same for all and joins them as it is.

set(TULLE_VALS f32 f64 c32 c64)
set(TULLE_IDXS i32 i64)

set(TULLE_FLAGS_base "")
# What these switch on, supported() of src/cpu/dispatch.c and tests/isa.sh ask the processor for.
set(TULLE_FLAGS_avx2 -mavx2 -mbmi -mbmi2 -mpopcnt)
set(TULLE_FLAGS_avx512 ${TULLE_FLAGS_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd
                       -mprefer-vector-width=512)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    foreach(isa avx2 avx512)
        list(JOIN TULLE_FLAGS_${isa} " " flags)
        check_c_compiler_flag("${flags}" TULLE_CC_${isa})
    endforeach()
endif()

function(tulle_objects name)
    cmake_parse_arguments(arg "" "" "ISAS" ${ARGN})
    set(isas "")
    set(definitions "")
    foreach(isa ${arg_ISAS})
        if(isa STREQUAL "base")
            list(APPEND isas base)
        elseif(NOT DEFINED TULLE_FLAGS_${isa})
            message(FATAL_ERROR "TULLE_ISAS: ${isa} is not one of base, avx2, avx512")
        elseif(TULLE_CC_${isa})
            list(APPEND isas ${isa})
            string(TOUPPER ${isa} upper)
            list(APPEND definitions TL_HAVE_${upper})
        endif()
    endforeach()
    if(NOT "base" IN_LIST isas)
        message(FATAL_ERROR "TULLE_ISAS must contain base, which every machine can run")
    endif()
    set(libraries Threads::Threads m ${CMAKE_DL_LIBS})
    if(ZLIB_FOUND)
        list(APPEND definitions TULLE_HAVE_ZLIB)
        list(APPEND libraries ZLIB::ZLIB)
    endif()

    set(src ${PROJECT_SOURCE_DIR}/src)
    set(kernels ${src}/cpu/kernels.c ${src}/cpu/spmm_kernels.c)
    file(GLOB sources CONFIGURE_DEPENDS
         ${src}/*.c ${src}/base/*.c ${src}/matrix/*.c ${src}/plan/*.c ${src}/cpu/*.c ${src}/jit/*.c ${src}/gpu/*.c
         ${src}/dist/*.c)
    list(REMOVE_ITEM sources ${kernels})

    add_library(${name} OBJECT ${sources})
    set(parts ${name})
    foreach(isa ${isas})
        foreach(val ${TULLE_VALS})
            foreach(idx ${TULLE_IDXS})
                set(part ${name}_${isa}_${val}_${idx})
                add_library(${part} OBJECT ${kernels})
                target_compile_definitions(${part} PRIVATE TL_ISA=${isa} TL_VAL=${val} TL_IDX=${idx})
                target_compile_options(${part} PRIVATE ${TULLE_FLAGS_${isa}})
                list(APPEND parts ${part})
            endforeach()
        endforeach()
    endforeach()

    set(objects $<TARGET_OBJECTS:tulle_texts> $<TARGET_OBJECTS:tulle_ahead>)
    foreach(part ${parts})
        target_include_directories(${part} PRIVATE ${src})
        target_compile_definitions(${part} PRIVATE TULLE_BUILD ${definitions})
        target_link_libraries(${part} PRIVATE tulle_flags ${libraries})
        list(APPEND objects $<TARGET_OBJECTS:${part}>)
    endforeach()
    set(${name}_OBJECTS ${objects} PARENT_SCOPE)
    set(${name}_DEFINITIONS ${definitions} PARENT_SCOPE)
    set(${name}_ISAS ${isas} PARENT_SCOPE)
    set(TULLE_LIBRARIES ${libraries} PARENT_SCOPE)
endfunction()
