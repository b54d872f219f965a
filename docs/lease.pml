/*
 * Leases of units (S32): processes charge units of a window ahead, grant them by themselves, and give back what is left.
 *
 *   npm run model          searches every order of the events below, and every wrong variant
 *
 * The model has one window of one account. An instance has a number, as its start names it in the code. Time is in no
 * clock: a lease, an instance and the memory of a receipt may end at any step. So everything that holds here holds for
 * clocks of any speed, and for processes that stop for any time. A stopped process takes no step.
 *
 * A call stays in the network when the store executed it, and can be executed again, as by a client library that repeats
 * it; it can also be lost, and so can its answer. A process can die at any step.
 *
 * Never over: admitted[i] <= MAX, for each instance i. With QUIET, nothing is lost, dies or is reset, and in the end the
 * store has counted what was admitted, and nothing else.
 *
 * The search with MAX=2 is whole in half a minute; with MAX=3 it needs more than 3 GB.
 *
 * Wrong variants, which must be refuted:
 *   W_NO_RECEIPT    the store does not remember that units went back
 *   W_NO_UNTIL      the store takes units back although it may have forgotten the receipt
 *   W_NO_INSTANCE   units go back to the instance that is active, whichever it is
 *   W_CARRY         units that are left stay, although the answer names another instance
 *   W_KEEP          units that go back may still be granted
 *   W_LATE          an answer counts although the process gave up the call
 *   W_NO_RETURN     units that are left do not go back (with QUIET)
 */
#ifndef N
#define N 2
#endif
#ifndef MAX
#define MAX 3
#endif
/* Instances, calls for leases per process, and returns of all processes. */
#ifndef INSTANCES
#define INSTANCES 2
#endif
#ifndef ASKS
#define ASKS 2
#endif
#ifdef QUIET
#define RETURNS 4
#else
#define RETURNS 2
#endif

/* The store. */
byte instance = 0;
byte counted = 0;
bool seen[RETURNS];
bool over[RETURNS];

/* Admitted and not refunded, by the instance that was charged. */
byte admitted[INSTANCES];

/* Processes. */
byte left[N];
byte leftOf[N];
bool isLive[N];
byte asks[N];
byte own[N];
byte ownOf[N];

#ifdef W_LATE
/* Units of an answer that came too late. */
byte late[N];
#define tooLate(p) late[p] = granted[p]
#else
#define tooLate(p) skip
#endif
/* Processes that are over. */
byte ended = 0;

/* A call for a lease of a process: 0 none, 1 sent, 2 executed, 3 given up but still in the network. */
byte call[N];
byte granted[N];
byte grantedOf[N];

/* Returns in the network. */
byte returns = 0;
bool isSent[RETURNS];
byte units[RETURNS];
byte unitsOf[RETURNS];

inline admit(i, amount) {
  admitted[i] = admitted[i] + amount;
  assert(admitted[i] <= MAX)
}

/* What is left goes back. Past the bound of the search it is lost. */
inline giveBack(p) {
  if
  :: left[p] > 0 && returns < RETURNS ->
#ifndef W_NO_RETURN
    isSent[returns] = true;
    units[returns] = left[p];
    unitsOf[returns] = leftOf[p];
    returns++
#else
    skip
#endif
  :: else -> skip
  fi;
#ifndef W_KEEP
  left[p] = 0;
  isLive[p] = false
#else
  isLive[p] = left[p] > 0
#endif
}

/* The store charges as many of the units as fit. */
inline charge(p, wanted) {
  granted[p] = (wanted < MAX - counted -> wanted : MAX - counted);
  grantedOf[p] = instance;
  counted = counted + granted[p]
}

/* Without what no step reads any more, the search is smaller. */
inline forget(p) {
  call[p] = 0;
  granted[p] = 0;
  grantedOf[p] = 0
}

/* Events of process p. Its calls are executed by the store, which is not a process of its own here: each is one step. */
active [N] proctype Process() {
  byte p;
  p = _pid;
  do
  /* It asks for a lease. */
  :: d_step { call[p] == 0 && asks[p] < ASKS -> asks[p]++; call[p] = 1 }
  /* The store executes the call: for a request, and up to two units more. */
  :: d_step { call[p] == 1 -> charge(p, 1); call[p] = 2 }
  :: d_step { call[p] == 1 -> charge(p, 2); call[p] = 2 }
  :: d_step { call[p] == 1 -> charge(p, 3); call[p] = 2 }
#ifndef QUIET
  /* Once more: this answer is lost. */
  :: d_step { call[p] == 2 && counted < MAX -> counted++ }
  /* The process gives the call up. It can still be executed. */
  :: d_step { call[p] == 1 -> call[p] = 3 }
  :: d_step { call[p] == 3 -> charge(p, 2); tooLate(p); forget(p) }
  :: d_step { call[p] == 3 -> forget(p) }
  /* The answer is lost, or late. */
  :: d_step { call[p] == 2 -> tooLate(p); forget(p) }
#ifdef W_LATE
  /* Its units are granted, although the process asked again since, or gave units back. */
  :: d_step { late[p] > 0 -> left[p] = left[p] + late[p]; isLive[p] = true }
#endif
#endif
  /* The answer arrives: the request takes a unit, and the others are a lease. What was left stays, of this instance. */
  :: d_step {
      call[p] == 2 ->
      if
      :: granted[p] > 0 ->
#ifndef W_CARRY
        if
        :: left[p] > 0 && leftOf[p] != grantedOf[p] -> giveBack(p)
        :: else -> skip
        fi;
#endif
        admit(grantedOf[p], 1);
        own[p] = 1;
        ownOf[p] = grantedOf[p];
        left[p] = left[p] + granted[p] - 1;
        leftOf[p] = grantedOf[p];
        isLive[p] = true
      :: else -> skip
      fi;
      forget(p)
    }
  /* A request takes a unit. */
  :: d_step { isLive[p] && left[p] > 0 -> left[p]--; admit(leftOf[p], 1); own[p] = 1; ownOf[p] = leftOf[p] }
  /* A request is refunded into the lease. */
  :: d_step { isLive[p] && own[p] > 0 && ownOf[p] == leftOf[p] -> own[p] = 0; admitted[leftOf[p]]--; left[p]++ }
  /* The lease is over, and some time later the process finds out: then what is left goes back. */
  :: d_step { isLive[p] -> isLive[p] = false }
  :: d_step { left[p] > 0 && !isLive[p] -> giveBack(p) }
#ifndef QUIET
  /* It dies. */
  :: d_step { left[p] > 0 || call[p] > 0 -> left[p] = 0; isLive[p] = false; own[p] = 0; forget(p) }
#endif
  :: d_step { asks[p] == ASKS && call[p] == 0 && left[p] == 0 && !isLive[p] -> ended++ };
    break
  od
}

#ifdef W_NO_INSTANCE
#define isOfInstance(r) true
#else
#define isOfInstance(r) (unitsOf[r] == instance)
#endif
#ifdef W_NO_RECEIPT
#define isUnknown(r) true
#else
#define isUnknown(r) (!seen[r])
#endif
#ifdef W_NO_UNTIL
#define isInTime(r) true
#else
#define isInTime(r) (!over[r])
#endif

inline takeBack(r) {
  if
  :: isOfInstance(r) && isUnknown(r) && isInTime(r) ->
    counted = (counted > units[r] -> counted - units[r] : 0);
    seen[r] = true
  :: else -> skip
  fi
}

#ifdef QUIET
#define RETURN(r) :: d_step { isSent[r] -> takeBack(r); isSent[r] = false }
#else
/* Executed, perhaps again; lost; or its time is over, and the store forgets it. */
#define RETURN(r) \
  :: d_step { isSent[r] -> takeBack(r) } \
  :: d_step { isSent[r] -> isSent[r] = false } \
  :: d_step { isSent[r] && !over[r] -> over[r] = true; seen[r] = false }
#endif

/* The network, and the window. */
active proctype World() {
  do
  RETURN(0)
  RETURN(1)
#ifdef QUIET
  RETURN(2)
  RETURN(3)
#endif
#ifndef QUIET
  /* The window ends, or is reset: another instance begins. Leases of processes that do not know it may go on. */
  :: d_step { instance < INSTANCES - 1 -> instance++; counted = 0 }
#endif
#ifdef QUIET
  :: d_step {
      ended == N && !isSent[0] && !isSent[1] && !isSent[2] && !isSent[3] ->
      assert(counted == admitted[instance])
    };
    break
#else
  :: d_step { ended == N && !isSent[0] && !isSent[1] -> skip }; break
#endif
  od
}
