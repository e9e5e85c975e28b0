# Manual pages, made of frames in docs/man and of what the trainer's --help says, and the reference of the public headers.
set(HALFSTEP_MAN_PAGES "")
function(halfstep_man_page name section)
    set(page ${CMAKE_BINARY_DIR}/man/${name}.${section})
    add_custom_command(OUTPUT ${page}
        COMMAND bash ${CMAKE_SOURCE_DIR}/tools/man.sh ${CMAKE_SOURCE_DIR}/docs/man/${name}.${section}.in
            ${page} ${PROJECT_VERSION} ${ARGN}
        DEPENDS docs/man/${name}.${section}.in tools/man.sh ${ARGN}
        COMMENT "Writing ${name}.${section}" VERBATIM)
    set(HALFSTEP_MAN_PAGES ${HALFSTEP_MAN_PAGES} ${page} PARENT_SCOPE)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endfunction()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man)
halfstep_man_page(trainer 1 $<TARGET_FILE:trainer>)
halfstep_man_page(halfstep 3)
add_custom_target(man ALL DEPENDS ${HALFSTEP_MAN_PAGES})

configure_file(docs/Doxyfile.in ${CMAKE_BINARY_DIR}/Doxyfile @ONLY)
add_custom_target(doc COMMAND doxygen ${CMAKE_BINARY_DIR}/Doxyfile COMMENT "Writing doc/html" VERBATIM)
