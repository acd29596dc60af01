# SPDX-License-Identifier: MIT
#
# GraphBLAS and Eigen, which tulle is tested against and measured against.  TULLE_PEERS_MISSING lists the
# Debian packages that were not found; when it is empty, the library tulle_peers holds every file of bench/
# that has no main (bench/peers.h), and both the benchmarks and the oracles of tests/ link it.

find_path(GRAPHBLAS_INCLUDE GraphBLAS.h PATH_SUFFIXES suitesparse)
find_library(GRAPHBLAS_LIBRARY graphblas)
find_path(EIGEN_INCLUDE Eigen/SparseCore PATH_SUFFIXES eigen3)

set(TULLE_PEERS_MISSING "")
if(NOT CMAKE_CXX_COMPILER)
    list(APPEND TULLE_PEERS_MISSING g++)
endif()
if(NOT GRAPHBLAS_INCLUDE OR NOT GRAPHBLAS_LIBRARY)
    list(APPEND TULLE_PEERS_MISSING libgraphblas-dev)
endif()
if(NOT EIGEN_INCLUDE)
    list(APPEND TULLE_PEERS_MISSING libeigen3-dev)
endif()
list(JOIN TULLE_PEERS_MISSING " " TULLE_PEERS_MISSING)

file(GLOB sources CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/bench/*.c ${PROJECT_SOURCE_DIR}/bench/*.cpp)
set(TULLE_BENCH_PROGRAMS "")
set(peers "")
foreach(source ${sources})
    file(STRINGS ${source} main REGEX "^int main\\(")
    if(main)
        list(APPEND TULLE_BENCH_PROGRAMS ${source})
    else()
        list(APPEND peers ${source})
    endif()
endforeach()

if(peers AND NOT TULLE_PEERS_MISSING)
    add_library(tulle_peers STATIC EXCLUDE_FROM_ALL ${peers})
    target_include_directories(tulle_peers PUBLIC ${PROJECT_SOURCE_DIR}/bench)
    target_include_directories(tulle_peers SYSTEM PRIVATE ${GRAPHBLAS_INCLUDE} ${EIGEN_INCLUDE})
    target_link_libraries(tulle_peers PUBLIC tulle_static PRIVATE tulle_flags ${GRAPHBLAS_LIBRARY})
    # Sparse times dense is where Eigen can use threads, and vectors: it gets both.
    find_package(OpenMP COMPONENTS CXX QUIET)
    check_c_compiler_flag(-march=native TULLE_CC_native)
    set(options "")
    if(TULLE_CC_native)
        set(options -march=native -ffp-contract=fast)
    endif()
    if(OpenMP_CXX_FOUND)
        list(APPEND options ${OpenMP_CXX_FLAGS})
        target_link_libraries(tulle_peers PRIVATE OpenMP::OpenMP_CXX)
    endif()
    set_source_files_properties(${PROJECT_SOURCE_DIR}/bench/peer_eigen_dense.cpp TARGET_DIRECTORY tulle_peers
                                PROPERTIES COMPILE_OPTIONS "${options}")
endif()
