/* For each row of dy the next that goes to the same row of the table, or the number of rows; marked where it is the first
   of them. They stand in the call's scratch. */
#define HS_FIRST 0x80000000u

hs_words hs_links() {
    return hs_words(hs_call.record.scratch);
}
