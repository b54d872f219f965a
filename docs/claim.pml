/*
 * The protocol of one idempotency key, as headgate's stores and gateways run it: claims.md as a model for the model
 * checker spin. Spin searches every order of a few attempts, of their late and lost commands, of their crashes and of the
 * end of the lease. It finds no order that breaks a guarantee. For every wrong variant it finds one.
 *
 * Run (any assertion or invalid end state is a violation, and spin prints its name):
 *
 *   spin -a [-Doption ...] claim.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *   the shortest trace of a wrong variant: gcc with -DBFS, ./pan, then  spin -t -p -g [same options] claim.pml
 *   no livelock:  gcc -O2 -DNP -o pan pan.c && ./pan -l -m100000        (with -DN=2)
 *
 * Bounds      -DN=3        attempts (one client request at one gateway, with a token of its own)
 *             -DFPS=2      fingerprints: attempt 1 sends 1, the last ones may send 2
 *             -DCRASH=1    attempts that may crash, at any point        -DEXTENDS=1  renewals per attempt
 *             -DGIVEUP=2   commands whose reply does not arrive in time: applied or not, before or long after
 *             -DPOLL=0     begins repeated by a waiting duplicate
 * Policy      (none)       onOrphan: 'reject'
 *             -DREEXECUTE  onOrphan: 'reexecute'                        -DRECONCILE  onOrphan: 'reconcile' (truthful callback)
 *             -DFUSED      begin also marks the claim as dispatched: one round trip less
 *             -DDEADLINE   begin carries its deadline in the store's time: the store rejects a late begin
 *             -DSTRICT     without an acknowledged complete the client gets no result (with I12 it gets its answer)
 * World       -DNO_STALL   no attempt has the effect after losing its lease (the downstream fences, or stalls are bounded)
 *             -DFLUSH=1    how often the store loses everything         -DRETENTION=1  records expire (never under a live lease, or
 *                          without the outcome of a dispatched claim)
 *             -DFAILOVER=1 the store falls back to an earlier state
 *             -DRELEASED=1 how often the record of a released claim expires, which is minutes after its release
 *             -DRESTART    commands may be later than that. The next record counts its generations from the start, and
 *                          every late command fits it: the worst case
 *             -DRECREATE   extend on an absent record claims it again
 * Checks      -DFORCE_P1   at most one effect, with any policy          -DFORCE_P2  one result, even if the store lost data
 *             -DFORCE_P4   no orphan without a crash, even with RESTART
 *             -DNO_MONITOR without the P5 monitor: shows the damage, not the broken rule
 *             -DTRACE='"file"'  defines TRACE_COMMAND, TRACE_DONE, TRACE_LEARNT and TRACE_EVENT, to write down each step
 * Wrong       -DW_...      wrong variants: spin must refute each of them (claims.md lists them)
 *
 * Simplifications: a lease is a bit that may fall at any time, so every stall, clock and speed is covered. A crash ends
 * one attempt; the crash of a gateway is several of these, and its restart is other attempts. The result of an effect is
 * the number of the attempt that had the effect.
 */
#ifndef N
#define N 3
#endif
#ifndef FPS
#define FPS 2
#endif
#ifndef CRASH
#define CRASH 1
#endif
#ifndef GIVEUP
#define GIVEUP 2
#endif
#ifndef EXTENDS
#define EXTENDS 1
#endif
#ifndef POLL
#define POLL 0
#endif
#ifndef FLUSH
#define FLUSH 0
#endif
#ifndef RETENTION
#define RETENTION 0
#endif
#ifndef FAILOVER
#define FAILOVER 0
#endif
#ifndef RELEASED
#define RELEASED 1
#endif

/* record states */
#define ABSENT    0
#define PROGRESS  1
#define COMPLETED 2
#define NOBODY    3               /* completed, stored without its body */
#define FREE      4               /* released, its fingerprint still stored */

/* commands */
#define BEGIN    1
#define EXTEND   2
#define DISPATCH 3
#define COMPLETE 4
#define ABANDON  5
#define BIT(o)   (1 << (o))

/* replies; NOREPLY: the sender gave up at its deadline */
#define OK         1              /* claimed, renewed, dispatched, completed, released */
#define INPROGRESS 2
#define MISMATCH   3
#define UNKNOWN    4              /* the claim is a dispatched orphan */
#define SETTLED    5              /* completed before: the reply has the result */
#define SETTLEDNB  6              /* completed before: stored without a body */
#define LOST       7              /* the sender is not the owner, or no longer */
#define NOREPLY    8

#define NOTOKEN 0
#define RECONCILED (N + 1)        /* the result that a reconcile callback reports */
#define PROBE      (N + 2)        /* the token of the last retry */

#ifdef W_TOKEN_PER_GATEWAY
#define TOKEN(me) (1 + ((me) % 2))
#else
#define TOKEN(me) (me)
#endif
#ifdef FUSED
#define MARK 1
#else
#define MARK 0
#endif
#if defined(REEXECUTE) || defined(RECONCILE)
#define TAKES_ORPHANS 1
#else
#define TAKES_ORPHANS 0
#endif
#if defined(FORCE_P1) || !(defined(REEXECUTE) || (defined(RECONCILE) && !defined(NO_STALL)))
#define P1 1
#else
#define P1 0
#endif
#if defined(RESTART) && !defined(FORCE_P4)
#define P4_EXCUSE (expired > 0)
#else
#define P4_EXCUSE 0
#endif
#ifdef FORCE_P2
#define P2_EXCUSE 0
#else
#define P2_EXCUSE (losses > 0)
#endif

/* the record */
byte st, own, fp, res;            /* in COMPLETED and NOBODY, own is the attempt that completed it */
bool disp, inh, live;             /* dispatched; inherited from a dispatched orphan; lease not expired */
bool brief;                       /* a released claim: its record expires after minutes */

/* The generation, per sender: what matters is whether the generation in its last reply is still that of the record. */
#define NEVER    0                /* no begin of this sender had a reply */
#define CURRENT  1
#define OUTDATED 2
byte told[N + 3];

/* ghost variables: no rule of the protocol reads them */
byte fpOf[N + 1];
byte effects;                     /* executions of the protected effect */
byte the_result;                  /* the first definitive result that a client got */
byte losses, expired, crashes, giveups, polls, started, ended;
bool orphan_due;                  /* an owner crashed after it had asked for dispatch */

/* scratch of one atomic step, zero outside it */
byte k, r, j, o_st, o_own, o_fp, o_res;
bool o_disp, o_live;
#if FAILOVER
byte s_st, s_own, s_fp, s_res; bool s_disp, s_inh, s_live, snapped;
#endif

#ifdef TRACE
#include TRACE
#else
#define TRACE_COMMAND(i, t, f, o, v, big)             /* a command is about to be applied */
#define TRACE_DONE                                    /* it was applied: k, r and the record */
#define TRACE_LEARNT(i)                               /* the sender has read the generation of its claim */
#define TRACE_EVENT(name)                             /* time or a loss is about to change the record */
#endif

inline claim(t, f, keep) {        /* keep: the claim inherits from a dispatched orphan */
  st = PROGRESS; own = t; fp = f; live = 1; res = 0;
#ifndef W_CLAIM_EXPIRES_AS_FREE
  brief = 0;
#endif
#if TAKES_ORPHANS
  inh = keep;
#endif
#ifdef W_TAKEOVER_CLEARS_MARK
  disp = MARK;
#else
  disp = (keep || MARK);
#endif
  j = 1;                          /* a new generation */
  do
  :: j <= N -> told[j] = (told[j] -> OUTDATED : NEVER); j++
  :: else -> break
  od;
  j = 0
}

/* Whether token t owns the claim, and sender i knows its generation. */
#ifdef W_NO_GENERATION
#define MINE(t, i) (st == PROGRESS && own == (t))
#else
#define MINE(t, i) (st == PROGRESS && own == (t) && told[i] != OUTDATED)
#endif

inline settled() {                /* the reply to a command that comes after the outcome */
  if
  :: st == COMPLETED -> k = SETTLED; r = res
  :: st == NOBODY    -> k = SETTLEDNB
  :: else            -> k = LOST
  fi
}

#if defined(W_COMPLETED_SKIPS_FINGERPRINT)
#define FINGERPRINT_COUNTS(o) !((o) == BEGIN && st == COMPLETED)
#elif defined(W_FREE_FORGETS_FINGERPRINT)
#define FINGERPRINT_COUNTS(o) !((o) == BEGIN && st == FREE)
#elif defined(W_COMPLETE_WITHOUT_FINGERPRINT)
#define FINGERPRINT_COUNTS(o) ((o) != COMPLETE)
#else
#define FINGERPRINT_COUNTS(o) true
#endif

/* One command of sender i, atomically in the store. Sets k (reply) and r (result). */
inline apply(i, t, f, o, v, big, sentmark) {
  k = LOST; r = 0;
  TRACE_COMMAND(i, t, f, o, v, big)
  o_st = st; o_own = own; o_fp = fp; o_res = res; o_disp = disp; o_live = live;
  if
#ifdef W_COMPLETED_SKIPS_FINGERPRINT
  :: o == BEGIN && st == COMPLETED && fp != f -> k = SETTLED; r = res
#endif
#ifdef W_FREE_FORGETS_FINGERPRINT
  :: o == BEGIN && st == FREE && fp != f -> claim(t, f, 0); k = OK
#endif
  :: st != ABSENT && fp != f && FINGERPRINT_COUNTS(o) -> k = (o == BEGIN -> MISMATCH : LOST)
  :: else ->
    if
    :: o == BEGIN ->
      if
      :: st == ABSENT || st == FREE -> claim(t, f, 0); k = OK
      :: st == COMPLETED || st == NOBODY -> settled()
#ifndef W_BEGIN_NOT_IDEMPOTENT
      :: st == PROGRESS && own == t ->                  /* its own claim: an earlier reply was lost */
         live = 1; k = OK;
#ifdef W_BEGIN_CLEARS_MARK
         disp = MARK
#endif
#ifdef W_BEGIN_SETS_MARK
         disp = 1
#endif
#endif
      :: else ->
        if
#ifdef W_NO_LEASE
        :: else -> k = INPROGRESS
#else
        :: live -> k = INPROGRESS;
           assert(own != t)                             /* P4: no attempt is rejected because of its own claim */
        :: !live && !disp -> claim(t, f, 0); k = OK
        :: !live && disp ->
#if TAKES_ORPHANS || defined(W_TAKEOVER_OF_DISPATCHED)
           claim(t, f, 1); k = OK
#else
           k = UNKNOWN
#endif
#endif
        fi
      fi

    :: o == EXTEND ->
#ifdef W_EXTEND_REVIVES
      if :: st == PROGRESS -> own = t; live = 1; k = OK :: else -> settled() fi
#else
      if
      :: MINE(t, i) -> live = 1; k = OK
#ifdef RECREATE
      :: st == ABSENT -> st = PROGRESS; own = t; fp = f; live = 1; disp = sentmark; k = OK
#endif
      :: else -> settled()
      fi
#endif

    :: o == DISPATCH ->
#ifdef W_DISPATCH_WITHOUT_CAS
      if :: st == PROGRESS -> disp = 1; k = OK :: else -> k = OK fi
#else
      if
      :: MINE(t, i) ->
         live = 1; inh = 0; k = OK;
#ifndef W_NO_MARK
         disp = 1
#endif
      :: else -> settled()
      fi
#endif

    :: o == COMPLETE ->
      if
#ifndef W_COMPLETE_OVERWRITES
      :: (st == COMPLETED || st == NOBODY) && own == t -> k = OK      /* its own outcome: an earlier reply was lost */
      :: (st == COMPLETED || st == NOBODY) && own != t -> settled()
#endif
#ifdef W_COMPLETE_NEEDS_LEASE
      :: st == PROGRESS && !live -> k = LOST
#endif
#ifdef W_COMPLETE_NEEDS_OWNER
      :: st == PROGRESS && own != t -> k = LOST
#endif
      :: else ->                                        /* owner or not: the first definitive outcome wins */
         st = (big -> NOBODY : COMPLETED); own = t; fp = f; res = v; disp = 0; inh = 0; live = 0; brief = 0; k = OK
      fi

    :: o == ABANDON ->
      if
#ifdef W_ABANDON_WITHOUT_OWNER
      :: st == PROGRESS ->
#else
      :: MINE(t, i) ->
#endif
         own = NOTOKEN; live = 0; k = OK;
         if
#ifndef W_ABANDON_FREES_INHERITED
         :: inh                                         /* becomes an orphan again: its outcome is still unknown */
#ifdef W_ORPHAN_EXPIRES_AS_FREE
            -> brief = 1
#endif
#endif
         :: else -> st = FREE; disp = 0; inh = 0; brief = 1
         fi
      :: else -> settled()
      fi
    fi
  fi;
  TRACE_DONE
#ifndef NO_MONITOR
  /* P5: what a command may change, independently of its code above */
  assert(!(o_st == COMPLETED || o_st == NOBODY) || (st == o_st && res == o_res && own == o_own));
  assert(o_st == ABSENT || fp == o_fp);
  assert(!(o_st == PROGRESS && o_own != t) || (st == o_st && own == o_own && disp == o_disp && live == o_live)
         || (o == BEGIN && !o_live && own == t && st == PROGRESS && (TAKES_ORPHANS || !o_disp) && (disp || !o_disp))
         || (o == COMPLETE && (st == COMPLETED || st == NOBODY)));
  assert(!(o_st == PROGRESS && o_own == t && o_disp) || disp || st == COMPLETED || st == NOBODY || (o == ABANDON && st == FREE));
#endif
  o_st = 0; o_own = 0; o_fp = 0; o_res = 0; o_disp = 0; o_live = 0
}

inline wipe() { st = ABSENT; own = 0; fp = 0; res = 0; disp = 0; inh = 0; live = 0; brief = 0 }

/* The generations of the next record start again: none that a sender knows is surely outdated. */
inline restart() {
#ifdef RESTART
  j = 1;
  do
  :: j <= N -> told[j] = NEVER; j++
  :: else -> break
  od;
#endif
  j = 0
}

/* After a release another request can have the key. Each of the two requests has a result of its own. */
#define OTHER_REQUEST(v) (expired && v <= N && the_result <= N && fpOf[v] != fpOf[the_result])

/* A definitive result reaches the client. P2: the same result for all attempts. P3: never the result of another request. */
inline answer(v) {
  if
  :: !answered ->
     assert(the_result == 0 || the_result == v || P2_EXCUSE || OTHER_REQUEST(v));
     assert(v > N || fpOf[v] == f);
     if :: the_result == 0 -> the_result = v :: else fi;
     answered = 1
  :: else
  fi
}

#ifdef FORCE_P1
#define EXTRA 0
#else
#define EXTRA losses
#endif
#ifdef NO_MONITOR
#define HOLDER true
#else
#define HOLDER MINE(TOKEN(me), me)
#endif

inline execute() {
  effects++;
  assert(!P1 || effects <= 1 + EXTRA);                                      /* P1: each data loss of the store allows one more */
  assert(losses || !P1 || (st != ABSENT && fp == f && HOLDER))              /* P3, and only the owner has the effect */
}

/* States of an attempt. A command is in flight as soon as its state is entered. Its reply is read in the step that
   applies the command: anything in between, for example a stall, is covered by what may happen before the next step. */
#define BEGINNING   0
#define OWNER       1
#define DISPATCHING 2
#define EFFECT      3
#define SETTLING    4
#define RELEASING   5
#define END         6
#define DEAD        7

#define CALL(o) d_step { apply(me, TOKEN(me), f, o, out, 0, sent) }
/* No reply in time: the command was applied and its reply lost, or it is still on its way. */
#define GIVE_UP(o) giveups++; if :: CALL(o); k = 0; r = 0 :: late = late | BIT(o) fi
#ifdef DEADLINE
#define GIVE_UP_BEGIN giveups++; if :: CALL(BEGIN); k = 0; r = 0 :: skip fi
#else
#define GIVE_UP_BEGIN GIVE_UP(BEGIN)
#endif
#ifdef W_NO_BACKGROUND_RELEASE
#define LEAVE STOP
#else
#define LEAVE pc = RELEASING
#endif
#ifdef W_LOSER_ANSWERS_ITS_OWN
#define WINNERS(v) out
#else
#define WINNERS(v) v
#endif
#ifdef W_COMPLETE_NEEDS_LEASE
#define MAY_BE_LOST 1
#else
/* The record was lost, or it expired after a release, and then another request claimed the key. */
#define MAY_BE_LOST (losses || (TAKES_ORPHANS && expired))
#endif
#define COMPLETED_REPLY \
       if \
       :: k == OK -> answer(out) \
       :: k == SETTLED -> answer(WINNERS(r)) \
       :: k == SETTLEDNB                 /* 409: done, its body was not stored */ \
       :: k == LOST -> assert(MAY_BE_LOST); answer(out) \
       fi; k = 0; r = 0; STOP
#define FORGET ext = 0; answered = 0; unsure = 0; sent = 0   /* an ended attempt does not need these: fewer states */
#define STOP FORGET; pc = END
#define FIRST (started >= me - 1 || fpOf[me] != 1)      /* symmetry: equal attempts start in their order */
#define STARTED if :: !begun -> begun = 1; started++ :: else fi

proctype attempt(byte me) {
  byte pc, late, f = fpOf[me], out = me, ext = EXTENDS;
  bool begun, answered, unsure, sent = MARK;
  /* late: commands that the attempt gave up on, and that may still arrive. answered: its client has an answer.
     unsure: a begin had no reply. sent: a dispatch was sent. out: the outcome to store. */
  do
  /* ---- commands that arrive late, or never ---- */
  :: d_step { late & BIT(BEGIN)  -> late = late & ~BIT(BEGIN); apply(me, TOKEN(me), f, BEGIN, 0, 0, 0); k = 0; r = 0 }
  :: d_step { late & BIT(EXTEND)  -> late = late & ~BIT(EXTEND); apply(me, TOKEN(me), f, EXTEND, 0, 0, sent); k = 0; r = 0 }
  :: d_step { late & BIT(DISPATCH) -> late = late & ~BIT(DISPATCH); apply(me, TOKEN(me), f, DISPATCH, 0, 0, 0); k = 0; r = 0 }
  :: atomic { late & BIT(COMPLETE) -> late = late & ~BIT(COMPLETE);
       if :: d_step { apply(me, TOKEN(me), f, COMPLETE, out, 0, 0); k = 0; r = 0 } :: d_step { apply(me, TOKEN(me), f, COMPLETE, out, 1, 0); k = 0; r = 0 } fi }
  :: d_step { late & BIT(ABANDON)  -> late = late & ~BIT(ABANDON); apply(me, TOKEN(me), f, ABANDON, 0, 0, 0); k = 0; r = 0 }
  :: d_step { late && pc >= END -> late = 0 }

  /* ---- a crash; a command in flight may still arrive ---- */
  :: atomic { pc < END && crashes < CRASH && FIRST -> STARTED; crashes++;
       if
       :: pc == BEGINNING   -> late = late | BIT(BEGIN)
       :: pc == DISPATCHING -> late = late | BIT(DISPATCH)
       :: pc == SETTLING    -> late = late | BIT(COMPLETE)
       :: pc == RELEASING   -> late = late | BIT(ABANDON)
       :: true                                                             /* the command was not sent, or is lost */
       fi;
       if :: sent || pc == DISPATCHING -> orphan_due = 1 :: else fi;
       FORGET; pc = DEAD }
  :: pc >= END && !late -> break

  /* ---- begin ---- */
  :: atomic { pc == BEGINNING && FIRST -> STARTED; CALL(BEGIN);
       if
       :: k == OK -> TRACE_LEARNT(me) told[me] = CURRENT; pc = OWNER;
#ifdef RECONCILE
          if
          :: inh && effects -> out = RECONCILED; pc = SETTLING             /* the callback: the effect happened */
          :: inh && !effects                                               /* the effect did not happen: go on as the owner */
          :: inh -> STOP                                               /* the callback does not know: 409, the lease expires */
          :: !inh
          fi
#endif
       :: k == SETTLED -> answer(r); if :: unsure -> pc = RELEASING :: else -> STOP fi      /* replay */
       :: k == INPROGRESS && polls < POLL -> polls++                       /* a duplicate waits */
       :: k == INPROGRESS || k == MISMATCH || k == UNKNOWN || k == SETTLEDNB -> if :: unsure -> pc = RELEASING :: else -> STOP fi   /* 409 */
       fi; k = 0; r = 0 }
  :: atomic { pc == BEGINNING && FIRST && giveups < GIVEUP -> STARTED; GIVE_UP_BEGIN; unsure = 1;
       if
       :: pc = BEGINNING                                                   /* begin again, with the same token */
       :: answered = 1; LEAVE                                              /* 503 */
       fi }

  /* ---- the owner, before the effect ---- */
  :: atomic { pc == OWNER -> pc = RELEASING; answered = 1 }                /* our own 429 or 422, or the client left: no effect yet */
  :: d_step { pc == OWNER -> pc = (MARK -> EFFECT : DISPATCHING) }
  :: atomic { pc == DISPATCHING -> sent = 1; CALL(DISPATCH);
       if
       :: k == OK -> pc = EFFECT
       :: k == SETTLED -> answer(r); STOP
       :: k == LOST || k == SETTLEDNB -> STOP                          /* 409, nothing was done */
       fi; k = 0; r = 0 }
  :: atomic { pc == DISPATCHING && giveups < GIVEUP -> sent = 1; GIVE_UP(DISPATCH);
       if
       :: pc = DISPATCHING
#ifdef W_EFFECT_WITHOUT_REPLY
       :: pc = EFFECT
#endif
       :: answered = 1; LEAVE                                              /* 503, nothing was done */
       fi }

  /* ---- renewals, by a timer of their own ---- */
  :: atomic { (pc == OWNER || pc == EFFECT || pc == SETTLING) && ext -> ext--; CALL(EXTEND);
       if
       :: k == OK || pc == SETTLING                                        /* after the effect, its outcome must be stored */
       :: k == SETTLED && pc != SETTLING -> answer(r); STOP            /* the abort signal fires before the effect */
       :: k != OK && k != SETTLED && pc != SETTLING -> STOP            /* 409 */
       fi; k = 0; r = 0 }
  :: atomic { (pc == OWNER || pc == EFFECT || pc == SETTLING) && ext && giveups < GIVEUP -> ext--; GIVE_UP(EXTEND) }

  /* ---- the effect: any time may have passed since dispatch ---- */
#ifdef NO_STALL
  :: atomic { pc == EFFECT && !(MINE(TOKEN(me), me) && live) -> STOP }
#define MAY_ACT (MINE(TOKEN(me), me) && live)            /* the fence also knows the generation */
#else
#define MAY_ACT true
#endif
  :: atomic { pc == EFFECT && MAY_ACT -> execute(); pc = SETTLING }        /* done, and the attempt has the answer */
  :: d_step { pc == EFFECT -> pc = SETTLING }                                       /* an outcome that must be stored, but no effect */
  :: atomic { pc == EFFECT && MAY_ACT -> execute(); answered = 1;          /* done; 504 or the client left: the outcome comes later */
#ifdef W_RELEASE_ON_DISCONNECT
       pc = RELEASING
#else
       pc = SETTLING
#endif
     }
  :: atomic { pc == EFFECT -> pc = RELEASING; answered = 1 }               /* certainly no effect: rejected, or the provider's 429 */

  /* ---- settle: the outcome is stored before the client has the end of its answer ---- */
#ifdef W_TOO_LARGE_IS_RELEASED
  :: atomic { pc == SETTLING -> answer(out); pc = RELEASING }
#else
  :: atomic { pc == SETTLING -> d_step { apply(me, TOKEN(me), f, COMPLETE, out, 1, 0) }; COMPLETED_REPLY }      /* larger than the bound */
#endif
  :: atomic { pc == SETTLING -> CALL(COMPLETE); COMPLETED_REPLY }
  :: atomic { pc == SETTLING && giveups < GIVEUP -> GIVE_UP(COMPLETE);
#ifdef STRICT
       answered = 1;                                                       /* 503; a later attempt gets the result */
#else
       answer(out);                                                        /* I12: the client gets its answer; complete is retried */
#endif
#ifdef W_NO_BACKGROUND_SETTLE
       STOP
#endif
     }

  /* ---- release, until it is acknowledged ---- */
  :: atomic { pc == RELEASING -> CALL(ABANDON); k = 0; r = 0; STOP }
  :: atomic { pc == RELEASING && giveups < GIVEUP -> GIVE_UP(ABANDON) }
  od;
  atomic { ended++; told[me] = NEVER; pc = 0; out = 0; begun = 0 }
}

/* Time, data losses of the store, and the final checks. */
active proctype world() {
  byte f;
  do
#ifdef W_LEASE_IS_TTL
  :: d_step { st == PROGRESS && live -> TRACE_EVENT(EXPIRE) wipe() }
#else
  :: d_step { st == PROGRESS && live -> TRACE_EVENT(LEASE_OVER) live = 0 }
#endif
#if FLUSH
  :: d_step { st != ABSENT && losses < FLUSH -> TRACE_EVENT(EXPIRE) losses++; wipe() }
#endif
#if RELEASED
  :: d_step { brief && !live && expired < RELEASED -> TRACE_EVENT(EXPIRE) expired++; wipe(); restart() }
#endif
#if RETENTION
  :: d_step { st != ABSENT && !(st == PROGRESS && (live || disp)) && losses < RETENTION -> TRACE_EVENT(EXPIRE) losses++; wipe() }
#endif
#ifdef W_UNKNOWN_EXPIRES
  :: d_step { st == PROGRESS && !live && disp -> TRACE_EVENT(EXPIRE) wipe() }
#endif
#if FAILOVER
  :: d_step { !snapped -> snapped = 1; s_st = st; s_own = own; s_fp = fp; s_res = res; s_disp = disp; s_inh = inh; s_live = live }
  :: d_step { snapped && losses < FAILOVER -> losses++; st = s_st; own = s_own; fp = s_fp; res = s_res; disp = s_disp; inh = s_inh; live = s_live; brief = (st == FREE) }
#endif
  :: ended == N -> break
  od;
  /* P4: all attempts have ended and the lease has expired. One more retry of the same request must get a reply. */
  atomic {
    if :: live -> TRACE_EVENT(LEASE_OVER) live = 0 :: else fi;
    assert(TAKES_ORPHANS || losses || P4_EXCUSE || orphan_due || !(st == PROGRESS && disp));   /* no orphan unless an owner crashed after dispatch */
    f = (st == ABSENT -> 1 : fp);
    apply(PROBE, PROBE, f, BEGIN, 0, 0, 0);
    assert(k == OK || k == SETTLED || k == SETTLEDNB || (k == UNKNOWN && st == PROGRESS && disp))
  }
}

init {
  byte i = 1;
  atomic {
    fpOf[1] = 1;
    do
    :: i < N -> i++;
       if
       :: fpOf[i - 1] == 1 -> fpOf[i] = 1
#if FPS > 1
       :: i > (N + 1) / 2 -> fpOf[i] = 2                 /* at most half: the rest is the same, with names exchanged */
#endif
       fi
    :: else -> break
    od;
    i = 1;
    do
    :: i <= N -> run attempt(i); i++
    :: else -> break
    od
  }
}
