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
# three ISAs; tests/check_fused.sh looks for multiply-adds in all of them); they see -DTL_ISA=avx2 -DTL_VAL=f64
# -DTL_IDX=i32.  An ISA that this compiler or processor family does not know is left out, and TL_HAVE_AVX2,
# TL_HAVE_AVX512 say which are known.  What is embedded in the library (TulleKernels.cmake) is the same for all
# and joins them as it is.
#
# With TULLE_QUICK only the best ISA that this machine runs gets kernels, and those that a first look seldom needs,
# for complex values and 64-bit columns, are optimized less: `make demo` need not wait for all that.  dispatch.c alone
# sees which ISAs there are (TL_KERNELS_*), and is an object library of its own: a later build without TULLE_QUICK in
# the same folder compiles it anew, and the kernels that are missing or were optimized less, and nothing else.

set(TULLE_VALS f32 f64 c32 c64)
set(TULLE_IDXS i32 i64)
set(TULLE_SELDOM "^c|i64$")             # value and index type, such as f64_i32, of what a quick build optimizes less

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

# The best of these instruction sets that the machine which builds can run; base where none can be tried.
function(tulle_best_isa result isas)
    set(best base)
    if(NOT CMAKE_CROSSCOMPILING)
        foreach(isa avx2 avx512)
            if(NOT isa IN_LIST isas)
                continue()
            endif()
            set(tests "")
            foreach(flag ${TULLE_FLAGS_${isa}})
                if(flag MATCHES "^-m(avx|bmi|popcnt)")
                    string(REGEX REPLACE "^-m" "" flag ${flag})
                    string(APPEND tests " && __builtin_cpu_supports(\"${flag}\")")
                endif()
            endforeach()
            check_c_source_runs("int main(void) { return !(1${tests}); }" TULLE_RUNS_${isa})
            if(TULLE_RUNS_${isa})
                set(best ${isa})
            endif()
        endforeach()
    endif()
    set(${result} ${best} PARENT_SCOPE)
endfunction()

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
    if(TULLE_QUICK_NOW)
        tulle_best_isa(isas "${isas}")
        message(STATUS "kernels for this processor alone: ${isas}")
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
    set(dispatch ${src}/cpu/dispatch.c)
    list(REMOVE_ITEM sources ${kernels} ${dispatch})

    add_library(${name} OBJECT ${sources})
    add_library(${name}_dispatch OBJECT ${dispatch})
    set(parts ${name} ${name}_dispatch)
    foreach(isa ${isas})
        string(TOUPPER ${isa} upper)
        target_compile_definitions(${name}_dispatch PRIVATE TL_KERNELS_${upper})
        foreach(val ${TULLE_VALS})
            foreach(idx ${TULLE_IDXS})
                set(part ${name}_${isa}_${val}_${idx})
                add_library(${part} OBJECT ${kernels})
                target_compile_definitions(${part} PRIVATE TL_ISA=${isa} TL_VAL=${val} TL_IDX=${idx})
                target_compile_options(${part} PRIVATE ${TULLE_FLAGS_${isa}})
                if(TULLE_QUICK_NOW AND "${val}_${idx}" MATCHES "${TULLE_SELDOM}")
                    target_compile_options(${part} PRIVATE -O2)
                endif()
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
