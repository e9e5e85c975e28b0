# cmake -DBINARY=file.spv -DWORDS=file.inc -P embed.cmake: SPIR-V as the 32-bit words of a C array.
file(READ ${BINARY} bytes HEX)
# SPIR-V is written in the machine's order, which is little-endian on all that this runs on.
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1,\n" words "${bytes}")
file(WRITE ${WORDS} "${words}")
