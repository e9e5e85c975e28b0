/* Keeps the support library a library while it has no other source. */
extern int hs_test_support_empty;
int hs_test_support_empty;
