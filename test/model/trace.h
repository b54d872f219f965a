/* Writes down what happens to the record of docs/claim.pml. With COVER, the verifier also writes a trail of the first
   path to each kind of step: a command, or an event, on one kind of record. */
#define RECORD st, own, fp, res, disp, inh, live, brief

#ifdef COVER
c_decl {
  extern int readtrail;
  extern void (*uerror)(char *);
  static unsigned char is_reached[1 << 20];
  static void reach(unsigned kind) {
    if (readtrail || is_reached[kind]) return;
    is_reached[kind] = 1;
    uerror("reached");
  }
};
byte x_command, x_big, x_owner, x_same, x_told;
/* The kind of a step: the command, how its sender relates to the record, and the record. */
#define REACH(command, big_, owner, same, told_) \
  x_command = command; x_big = big_; x_owner = owner; x_same = same; x_told = told_; \
  c_code { reach(now.x_command << 15 | now.x_big << 14 | now.x_owner << 12 | now.x_same << 11 | now.x_told << 9 \
                 | now.st << 6 | now.disp << 5 | now.inh << 4 | now.live << 3 | now.brief << 2); }; \
  x_command = 0; x_big = 0; x_owner = 0; x_same = 0; x_told = 0;
#else
#define REACH(command, big_, owner, same, told_)
#endif

#define LEASE_OVER 6
#define EXPIRE     7

#define TRACE_COMMAND(i, t, f, o, v, big) \
  REACH(o, big, (own == t -> 2 : (own -> 1 : 0)), (fp == f), told[i]) \
  printf("C %d %d %d %d %d %d %d ", i, t, f, o, v, big, told[i]);
#define TRACE_DONE printf("%d %d %d %d %d %d %d %d %d %d\n", k, r, RECORD);
#define TRACE_LEARNT(i) printf("L %d\n", i);
#define TRACE_EVENT(name) REACH(name, 0, 0, 0, 0) printf("E %d\n", name);
