# SPDX-License-Identifier: MIT
#
# What `make install` puts where.  The tree may be moved afterwards: tulle.pc and the CMake package find
# their prefix from where they lie.
#
# The static library is exported apart from the shared one, because only its users need zlib's files.

include(CMakePackageConfigHelpers)
set(TULLE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tulle)

install(FILES include/tulle.h include/tulle_lab.h include/tulle_cuda.h include/tulle_opencl.h include/tulle_mpi.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tulle EXPORT tulleTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tulle_static EXPORT tulleStaticTargets DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tulleTargets NAMESPACE tulle:: DESTINATION ${TULLE_CMAKE_DIR})
install(EXPORT tulleStaticTargets NAMESPACE tulle:: DESTINATION ${TULLE_CMAKE_DIR})

configure_package_config_file(cmake/tulleConfig.cmake.in tulleConfig.cmake
                              INSTALL_DESTINATION ${TULLE_CMAKE_DIR}
                              NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(tulleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tulleConfig.cmake ${PROJECT_BINARY_DIR}/tulleConfigVersion.cmake
        DESTINATION ${TULLE_CMAKE_DIR})

# tulle.pc: the prefix as seen from the folder of the file itself.
file(RELATIVE_PATH TULLE_PC_UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" TULLE_PC_UP "${TULLE_PC_UP}")
set(TULLE_PC_REQUIRES "")
if(ZLIB_FOUND)
    set(TULLE_PC_REQUIRES zlib)
endif()
configure_file(cmake/tulle.pc.in tulle.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tulle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS tulle_command DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES docs/tulle.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# Manual pages of the functions, from the comments of the headers; where there is no awk there are none.
find_program(TULLE_AWK NAMES awk mawk gawk)
if(TULLE_AWK)
    set(headers include/tulle.h include/tulle_lab.h include/tulle_cuda.h include/tulle_opencl.h include/tulle_mpi.h)
    list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/)
    set(man3 ${PROJECT_BINARY_DIR}/man3)
    file(STRINGS docs/tulle.1 date REGEX "^\\.Dd ")
    string(REPLACE ".Dd " "" date "${date}")
    add_custom_command(OUTPUT ${man3}/tulle.3
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${man3}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${man3}
        COMMAND ${TULLE_AWK} -v out=${man3} -v date=${date} -f ${PROJECT_SOURCE_DIR}/scripts/man3.awk ${headers}
        DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/scripts/man3.awk docs/tulle.1
        COMMENT "Manual pages from the headers" VERBATIM)
    add_custom_target(tulle_manuals ALL DEPENDS ${man3}/tulle.3)
    install(DIRECTORY ${man3}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 FILES_MATCHING PATTERN "*.3")
endif()
install(FILES programs/completion/tulle.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tulle)
install(FILES programs/completion/_tulle DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES programs/completion/tulle.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
