#include "tests/simulation/redis/script_rules.hpp"

namespace dlock::redis {

const std::vector<ScriptRule>& script_rules() {
  static const std::vector<ScriptRule> rules = {
      // --- One holder ------------------------------------------------------------------------------------------------
      // Shows: crash-safety
      // Hazard: H1 expiry set after the value: one `SET ... PX`
      {"Lock_IsItsValueAndItsLease", false, R"(
        acquire c:1 => token new; ! TYPE $lock => string; holder => c:1; ! PTTL $lock => ~30000)"},
      // Shows: no-residue
      {"Keys_ExpireOrGo", false, R"(
        acquire c:1; acquire c:2 queue
        ! PTTL $queue => ~30000; ! PTTL $alive => ~30000; ! TTL $fence => 2505601..2592000
        release c:2 leave; release c:1; ! EXISTS $lock $queue $alive => 0)"},
      // Shows: one-holder
      // Hazard: H13, H14 a lost answer: repeat, or undo
      {"RepeatedAcquire_ChangesOnlyTheLease", false, R"(
        acquire c:1 try lease=5000 => token new; acquire c:1 => token same; acquire c:1 queue => token same
        ! PTTL $lock => ~30000; waiters => 0)"},
      // Shows: only-the-owner
      // Hazard: H2 delete without comparing: one script
      {"ReleaseOfAnotherOwner_TouchesNothing", false, R"(
        acquire c:1; release c:2 => 0 1 0; holder => c:1; release c:1 => 1; release c:1 => -1 1 0)"},
      // Shows: renewal
      // Hazard: H4, H17 a renewal revives a lock, or races a release
      {"Renewal_RevivesNoLockAndExtendsNoOtherOwners", false, R"(
        renew c:1 => 0; ! EXISTS $lock => 0
        acquire c:2 try lease=5000; renew c:1 60000 => 0; ! PTTL $lock => <=5000
        renew c:2 60000 => 1; ! PTTL $lock => >5000)"},
      {"LockWithoutAnEnd_IsBusy", false, R"(
        ! SET $lock foreign; acquire c:1 => busy -1; holder => foreign)"},
      // Hazard: H31 another program's data: a prefix
      {"KeyOfAnotherType_IsNotTouched", false, R"(
        ! HSET $lock field data; acquire c:1 => -WRONGTYPE; acquire c:1 queue => -WRONGTYPE
        release c:1 leave => -WRONGTYPE; renew c:1 => -WRONGTYPE; ! HGET $lock field => data; waiters => 0)"},

      // --- Tokens ----------------------------------------------------------------------------------------------------
      // Shows: growing-tokens
      // Hazard: H10, H12 clients' clocks, lost tokens: counter and `TIME`
      {"Tokens_GrowAndAreAtLeastTheServersTime", false, R"(
        10* acquire c:# => token new; release c:#
        ! DEL $fence
        10* acquire d:# => token new; release d:#)"},
      // Shows: growing-tokens
      // Hazard: H10, H12 clients' clocks, lost tokens: counter and `TIME`
      {"ClockSetBack_TokensGrow", false, R"(
        ! SET $fence 4000000000000000_c:0_host:1:x
        acquire c:1 => token new 4000000000000001; release c:1; acquire c:2 => token new 4000000000000002; release c:2
        ! SET $fence 100000000000000000_c:0_host:1:x; acquire c:1 => token new >99999999999999999)"},
      {"WaitersToken_IsAtLeastTheServersTime", false, R"(
        listen a; acquire c:1; acquire a:1 queue; ! SET $fence 1000000000000001_c:0_host:1:x; release c:1
        acquire a:1 queue => token new)"},
      // A server without a clock of its own begins in 1970. Of the numbers of that time many a text is greater than a
      // later one's.
      {"ClockOfFewerDigits_TokensGrow", false, R"(
        ! SET $fence 1795243190100435_c:0_host:1:x; acquire-1970 c:1 => 1795243190100436)"},
      // Hazard: H6 Lua's numbers: tokens are text
      {"Token_IsWrittenInFull", false, R"(
        acquire c:1; ! GET $fence => $token c:1 host:1:test)"},
      // It says who holds the lock, and `list` finds the lock by it. Once a day is enough, and not by others.
      {"RecordOfAToken_OutlivesEveryLease", false, R"(
        acquire c:1
        ! EXPIRE $fence 86410; renew c:1 => 1; ! TTL $fence => >2505600
        ! EXPIRE $fence 2419210; renew c:1 => 1; ! TTL $fence => >2505600
        ! EXPIRE $fence 2505610; renew c:1 => 1; ! TTL $fence => <=2505610
        ! EXPIRE $fence 86400; renew c:2 => 0; ! TTL $fence => <=86400
        ! PERSIST $fence; renew c:1 => 1; ! TTL $fence => -1
        ! DEL $fence; renew c:1 => 1; ! EXISTS $fence => 0)"},
      {"TokenLostWhileHeld_IsReplaced", false, R"(
        acquire c:1; ! DEL $fence; acquire c:1 => token new; acquire c:1 => token same)"},
      {"SenselessContentOfTheTokensKey_DoesNotStopTokens", false, R"(
        ! SET $fence ""; acquire c:1 => token new; release c:1
        ! SET $fence abc; acquire c:1 => token new; release c:1
        ! SET $fence -7_c:1_x; acquire c:1 => token new; release c:1
        ! SET $fence 12; acquire c:1 => token new; release c:1)"},

      // --- The queue -------------------------------------------------------------------------------------------------
      // Shows: first-come
      // Hazard: H25 the herd, costly waiting: one is woken, polls are rare
      {"Waiters_AreServedInOrderAndWokenOnce", false, R"(
        listen a; listen b; acquire c:1
        acquire a:1 queue => busy ~30000 0 1 1; acquire b:1 queue => busy ~30000 1 1 2
        acquire a:2 queue => busy * 2 1 3; acquire b:1 queue => busy * 1 0 2; ! ZSCORE $queue b:1 => 2
        release c:1; holder => a:1; grant a => a:1; acquire a:1 queue => token new
        release a:1; holder => b:1; grant b => b:1; acquire b:1 queue => token new
        release b:1; holder => a:2; grant a => a:2; acquire a:2 queue => token new
        waiters => 0; release a:2; holder => nil)"},
      // Shows: crash-safety
      {"Grant_LastsUntilItIsConfirmedOrExpires", false, R"(
        listen a; acquire c:1; acquire a:1 queue; release c:1; ! PTTL $lock => <=1000
        acquire a:1 queue => token new; ! PTTL $lock => ~30000)"},
      // Each acquire helps the first in line.
      // Shows: first-come
      {"LivingWaiter_IsNotOvertaken", false, R"(
        listen a; acquire c:1; acquire a:1 queue; ! DEL $lock; acquire c:2 => busy
        holder => a:1; hear a => a:1; waiters => 0)"},
      // An expiry tells nobody, so somebody has to look: until a:1 has to confirm, then until its lease ends.
      // Hazard: H23, H24 lost messages, expiry sends none: waiters ask
      {"NewHolder_IsWatchedByTheNextWaiter", false, R"(
        listen a; listen b; acquire c:1; acquire a:1 queue; acquire b:1 queue; acquire a:2 queue
        release c:1; hear a => a:1; hear b => b:1 1000
        acquire a:1 queue lease=300 => token new; hear b => b:1 300
        ! DEL $lock; acquire b:1 queue => token new; hear a => a:2 30000)"},
      // If one waiter is dead or stopped, all waiters of its client are.
      {"FirstWaiterOfAnotherClient_Watches", false, R"(
        listen a; listen b; acquire c:1
        40* acquire a:# queue
        9* acquire gone:# queue
        acquire b:1 queue; acquire b:2 queue; release c:1; hear b => b:1 1000)"},
      {"Watcher_IsSoughtInTheFirstHundredPlaces", false, R"(
        listen a; listen b; acquire c:1
        101* acquire a:# queue
        acquire b:1 queue; acquire a:101 queue; release c:1; hear a => a:0; hear a => a:1 1000)"},
      {"NoOtherClient_FirstWaiterWatches", false, R"(
        listen a; acquire c:1
        40* acquire a:# queue
        acquire gone:1 queue; ! CONFIG RESETSTAT; release c:1; hear a => a:0; hear a => a:1 1000; published => <=3)"},
      // A waiter whose channel has no subscriber counts as dead. A call asks only so many of them.
      {"EightClients_AreAskedToWatch", false, R"(
        listen c; listen w7; acquire h:1; acquire c:1 queue
        9* acquire w#:1 queue
        release h:1; holder => c:1; ! PUBLISH dlock:w:w7 end; hear w7 => w7:1 1000; ! FLUSHALL
        listen w8; acquire h:1; acquire c:1 queue
        8* acquire v#:1 queue
        acquire w8:1 queue; release h:1; holder => c:1; ! PUBLISH dlock:w:w8 end; hear w8 => end)"},
      {"Try_HasNoTicket", false, R"(
        acquire a:1; acquire b:1 => busy ~30000 -1 0 0)"},
      {"FirstWaiterLeaves_NextOneWatches", false, R"(
        listen b; acquire c:1 try lease=600000; acquire a:1 queue; acquire b:1 queue; release a:1 leave
        hear b => b:1 ~600000)"},
      // Nobody hears the channel of those before b:1. Who is in the queue stays where it is.
      // Hazard: a waiter is cut off during a release: it claims its place
      {"CutWaiter_GetsItsPlaceBack", false, R"(
        listen b; acquire c:1; acquire cut:1 queue => busy * 0 1 1; acquire cut:2 queue => busy * 1 1 2
        acquire cut:1 queue => busy * 0 0 1; acquire b:1 queue; acquire b:2 queue; release c:1; holder => b:1
        acquire cut:1 queue ticket=1 => busy * 0 1 1; acquire b:2 queue ticket=1 => busy * 1 0)"},
      // As a clock does that is set forward by more than the time that a waiter counts as alive without asking.
      // Hazard: H9 the server's clock is stepped: `doctor`; fencing
      {"WaitersThatExpiredByASteppedClock_ComeBack", false, R"(
        listen a; acquire c:1
        3* acquire a:# queue; ! ZADD $alive 1 a:#
        release c:1; holder => nil; acquire a:1 queue => token new
        acquire a:2 queue => busy; acquire a:0 queue => busy; release a:1; holder => a:2)"},
      {"FirstWaiter_TakesAFreeLock", false, R"(
        listen a; acquire c:1; acquire a:1 queue; ! DEL $lock; acquire a:1 queue => token new
        waiters => 0; release a:1; holder => nil)"},
      // A client that let its time pass loses its places with a later call.
      {"FirstWaiter_TakesAFreeLockBeforeDeadOnesAreRemoved", false, R"(
        acquire c:1; acquire b:1 queue; acquire s:1 queue; ! ZADD $alive -inf s:0; ! DEL $lock
        acquire b:1 queue => token new; waiters => 1)"},
      // Shows: crash-safety
      {"WaitersOfADeadClient_ArePassedOver", false, R"(
        listen b; acquire c:1; acquire gone:1 queue; acquire gone:2 queue; acquire b:1 queue
        release c:1 => 1; holder => b:1; waiters => 0)"},
      {"WaiterWithoutMessages_KeepsItsPlace", false, R"(
        acquire c:1; acquire deaf:1 blind; release c:1; holder => deaf:1; acquire deaf:1 blind => token new)"},
      // The place is what is left of it here, as if somebody else's question had kept the queue.
      // Shows: first-come
      {"WaiterSilentForLong_IsPassedOver", false, R"(
        listen slow; listen b; acquire c:1; acquire slow:1 queue alive=1; gone $alive
        ! ZADD $queue 1 slow:1; acquire b:1 queue; release c:1; holder => b:1; release b:1
        acquire c:1; acquire slow:1 blind alive=1; gone $alive
        ! ZADD $queue 1 slow:1; acquire b:1 queue; release c:1; holder => b:1)"},
      // It hears, and its place is there, but its time is over by the server's clock.
      {"ExpiredWaiterThatListens_IsPassedOver", false, R"(
        listen slow; listen b; acquire c:1; acquire slow:1 queue; acquire b:1 queue; ! ZADD $alive $past slow:1
        release c:1; holder => b:1)"},
      // A waiter that was let in and never confirmed counts as dead, with all its client's places. If it has none, its
      // mark goes.
      {"MarkOfAClientWithoutPlaces_Goes", false, R"(
        listen b; acquire c:1; acquire b:1 queue; ! ZADD $alive -inf ghost:1; release-all c:1
        ! ZSCORE $alive ghost:1 => nil; holder => b:1)"},
      {"Inspection_CountsWaiters", false, R"(
        inspect => nil -2 nil 0; acquire a:1; inspect => a:1 ~30000 $token a:1 host:1:test 0
        acquire b:1 queue; acquire c:1 queue; inspect => a:1 ~30000 $token a:1 host:1:test 2)"},
      {"Forget_TakesOnlyUnusedAndOldLocks", false, R"(
        forget 0 => 0; acquire a:1; ! DEL $queue; forget 0 => 0
        acquire b:1 queue; ! DEL $lock; forget 0 => 0; ! DEL $queue
        forget 3600000000 => 0; forget 0 => 1; ! EXISTS $fence => 0
        ! SET $fence somebody's_own; forget 0 => 0)"},
      // a:2 is granted the lock while it gives up.
      {"Leaving_GivesUpThePlaceOrTheLock", false, R"(
        listen a; acquire c:1; acquire a:1 queue; acquire a:2 queue; release a:1 leave => 0; waiters => 1
        holder => c:1; release c:1; holder => a:2; acquire a:3 queue; release a:2 leave => 1; holder => a:3
        release a:3 leave => 1; ! EXISTS $lock $queue $alive => 0)"},
      {"FirstWaiterLeavesAFreeLock_NextOneGetsIt", false, R"(
        listen a; acquire c:1; acquire a:1 queue; acquire a:2 queue; ! DEL $lock; release a:1 leave; holder => a:2)"},
      // Shows: waiters-woken
      {"FreeLock_IsAnnouncedToAll", false, R"(
        listen a; listen lock:$lock; acquire c:1; acquire a:1 queue; release c:1; release a:1
        ! PUBLISH dlock:w:lock:$lock end; hear lock:$lock => ""; hear lock:$lock => end)"},
      {"DeadWaitersRemoved_FreeLockIsAnnounced", false, R"(
        listen lock:$lock; acquire c:1; acquire gone:1 queue; release c:1; holder => nil; hear lock:$lock => "")"},
      {"Election_AnnouncesTheLeaderAndItsEnd", false, R"(
        listen lock:$lock; listen b; elect a:1 queue => token new; hear lock:$lock => ""
        elect b:1 queue => busy; release a:1; ! PUBLISH dlock:w:lock:$lock end; hear lock:$lock => end
        holder => b:1; elect b:1 queue => token new; hear lock:$lock => ""
        ! GET $fence => $token b:1 host:1:b:1 10.0.0.7:80
        release b:1; hear lock:$lock => ""; ! PUBLISH dlock:w:lock:$lock end; hear lock:$lock => end)"},

      // --- Servers in trouble ----------------------------------------------------------------------------------------
      // Hazard: H7 scripts do not roll back: the write that may fail first
      {"NoMemory_AcquireFailsAndReleaseHandsOn", false, R"(
        listen a; acquire c:1; acquire a:1 queue; ! CONFIG SET maxmemory 1; renew c:1 => 1; release c:1 => 1
        holder => a:1; release a:1 => 1; acquire c:2 => -OOM; ! CONFIG SET maxmemory 0; holder => nil; waiters => 0)"},
      // Hazard: H7 scripts do not roll back: the write that may fail first
      {"NoReplicas_NothingIsHalfApplied", false, R"(
        listen a; acquire c:1; acquire a:1 queue; ! CONFIG SET min-replicas-to-write 1; release c:1 => -NOREPLICAS
        renew c:1 => -NOREPLICAS; acquire c:1 => -NOREPLICAS; acquire b:1 queue => -NOREPLICAS
        ! CONFIG SET min-replicas-to-write 0; holder => c:1; waiters => 1; ! GET $fence => $token c:1 host:1:test)"},
      // a:1 is asking anyway, and will find out.
      // Hazard: H28 missing rights: a warning; polls
      {"NoRightToPublish_ReleaseHandsOnAndSaysSo", false, R"(
        acquire c:1; acquire a:1 queue; release nobody => 0 1; forbid-publishing; release c:1 => 1 0; holder => a:1)"},
      // Hazard: H29, H30 undeclared keys, hash tags: the layout of keys
      {"Scripts_TouchOnlyDeclaredKeys", false, R"(
        acquire c:1; acquire a:1 blind; release c:1; acquire a:1 blind; release a:1 leave; ! KEYS * => $fence)"},

      // --- Crowds ----------------------------------------------------------------------------------------------------
      {"CrowdOfDeadWaiters_DelaysLittle", false, R"(
        acquire c:1
        1000* acquire gone:#:1 queue
        1000* acquire gone#:1 queue
        release c:1 => 1 * 1; waiters => >1400; acquire-all c:2 => <=20; waiters => 0)"},
      {"Release_SaysWhetherItHasToBeRepeated", false, R"(
        listen b; acquire c:1
        200* acquire gone#:1 queue
        acquire b:1 queue; release-all c:1 => 4; holder => b:1; waiters => 0)"},
      // A call that removes all of them holds up the server. Once a call, to the living one, and to who watches. What
      // stays is the mark of who has to confirm.
      // Hazard: many dead or stopped waiters: one check per client
      {"DeadClient_IsAskedOnceAndLosesAllItsWaiters", false, R"(
        listen b; acquire c:1
        5000* acquire gone:# queue
        acquire b:1 queue; ! CONFIG RESETSTAT; release-all c:1 => 9..12; published => <=14
        holder => b:1; waiters => 0; ! ZCARD $alive => 1)"},
      {"PollingWaiter_OutlivesItsClientsListener", false, R"(
        acquire c:1; acquire deaf:1 queue; acquire deaf:2 blind; release-all c:1 => 1; holder => deaf:2)"},
      {"CrowdSilentForLong_IsPassedOver", false, R"(
        listen b; acquire c:1
        2000* acquire slow:# queue; ! ZADD $alive 1 slow:#
        acquire b:1 queue; release-all c:1 => <=6; holder => b:1; waiters => 0)"},
      // Shows: first-come
      // Hazard: many dead or stopped waiters: one check per client
      {"UnconfirmedGrant_CostsTheClientAllItsPlaces", false, R"(
        listen stopped; listen b; acquire c:1
        20* acquire stopped:# queue; acquire b:# queue
        release-all c:1; holder => stopped:0; ! DEL $lock; acquire-all c:2; holder => b:0
        20* acquire b:# queue => token new; release-all b:#
        waiters => 0; acquire c:1
        20* acquire stopped:# blind; acquire b:# queue
        release-all c:1; holder => stopped:0; ! DEL $lock; acquire-all c:2; holder => b:0
        20* acquire b:# queue => token new; release-all b:#
        waiters => 0)"},
      // Waiters that ask by themselves notice a grant in time without a message.
      {"NoRightToPublish_UnconfirmedGrantCostsAllPlaces", false, R"(
        forbid-publishing; acquire c:1
        20* acquire killed:# blind
        acquire b:1 blind; release-all c:1; holder => killed:0; ! DEL $lock
        acquire-all b:1 blind => <=4; holder => b:1; waiters => 0)"},
      // Somebody else may tell it, or it may find out too late: that says nothing about its client.
      {"NoRightToPublish_UnnotifiedWaiterIsNotSuspected", false, R"(
        forbid-publishing; acquire c:1; acquire a:1 queue; acquire a:2 queue; release-all c:1; holder => a:1
        ! ZSCORE $alive a:1 => nil; ! DEL $lock; acquire c:2; holder => a:2)"},
      {"UnconfirmedGrantOfAHugeCrowd_GoesInBoundedCalls", false, R"(
        listen stopped; acquire c:1
        2000* acquire stopped:# queue
        release-all c:1; ! DEL $lock; acquire-all c:2 => 5..8; waiters => 0)"},
      // Holders whose lease expired, that leave, whose lock is broken, and that confirm late and queue behind a:3.
      {"ConfirmedGivenUpOrLateGrant_KeepsOtherPlaces", false, R"(
        listen a; acquire c:1; acquire a:1 queue; acquire a:2 queue; acquire a:3 queue; release c:1
        acquire a:1 queue => token new; ! DEL $lock; acquire c:2; holder => a:2; ! FLUSHALL
        acquire c:1; acquire a:1 queue; acquire a:2 queue; acquire a:3 queue; release c:1
        release a:1 leave => 1; holder => a:2; ! FLUSHALL
        acquire c:1; acquire a:1 queue; acquire a:2 queue; acquire a:3 queue; release c:1
        release a:1 => 1; holder => a:2; ! FLUSHALL
        acquire c:1; acquire a:1 queue; acquire a:2 queue; acquire a:3 queue; release c:1
        ! DEL $lock; acquire a:1 queue => busy * 1; holder => a:2)"},

      // --- Read-write locks ------------------------------------------------------------------------------------------
      {"Readers_EnterTogetherAndAWriterAlone", true, R"(
        read a:1 => token new; read b:1 => token new; write c:1 => busy; release a:1; write c:1 => busy
        release b:1; write c:1 => token new; read a:2 => busy; write a:2 => busy)"},
      {"TokensOfReaders_GrowWithEachGrant", true, R"(
        read a:1 => token new; read b:1 => token new; read a:1 => token same; release a:1; release b:1
        write c:1 => token new)"},
      {"ClockSetBack_TokensOfReadersGrow", true, R"(
        read a:1; ! HSET $fence last 4000000000000000
        read b:1 => token new 4000000000000001; read c:1 => token new 4000000000000002)"},
      // Hazard: readers with one expiry, released lost permits: a deadline each
      {"DeadReadersLease_EndsWhileOthersRenew", true, R"(
        read dead:1; read b:1; pass dead:1 30000; renew b:1 => 1; renew dead:1 => 0
        release b:1; write c:1 => token new; inside => c:1; ! HGET $fence dead:1 => nil)"},
      {"Renewal_CountsFromNowAndTouchesNoOther", true, R"(
        read a:1 try lease=5000; read b:1 try lease=5000; renew a:1 60000 => 1; holders => b:1 a:1
        ! PTTL $lock => >60000; renew c:1 => 0; inside => a:1 b:1)"},
      // Hazard: readers enter one by one, tries jump the queue, dead writers block
      {"WaitingWriter_KeepsLaterReadersOut", true, R"(
        listen a; listen b; read x:1; write a:1 queue => busy * 0; read x:2 => busy
        read b:2 queue => busy * 1; read b:3 queue => busy * 2; write a:4 queue => busy * 3; read b:5 queue => busy * 4
        release x:1; inside => a:1; grant a => a:1; write a:1; release a:1
        inside => b:2 b:3; grant b => b:2; grant b => b:3; waiters => 2)"},
      {"WaitingWriterLeaves_ReadersBehindItEnter", true, R"(
        listen a; read x:1; write x:2 blind; read a:3 queue; release x:2 leave => -1; inside => a:3 x:1)"},
      // Nobody hears the channel of the first; the second was heard of long ago.
      // Hazard: readers enter one by one, tries jump the queue, dead writers block
      {"DeadWaitingWriter_KeepsNoReaderOut", true, R"(
        read x:1; write gone:2 queue; read x:3 => token new; waiters => 0
        write stopped:4 blind; ! ZADD $alive -1000 stopped:4; read x:5 queue => token new)"},
      {"ListeningWriter_KeepsReadersOut", true, R"(
        listen a; read x:1; write a:2 queue; read x:3 => busy; hear a => a:2 *; waiters => 1)"},
      {"WritersLeaseEnds_WaitingReadersEnterTogether", true, R"(
        listen a; write dead:1; read a:2 queue; read a:3 queue; read a:4 queue; pass dead:1 30000
        read a:2 queue => token new; inside => a:2 a:3 a:4)"},
      {"WritersMark_KeepsReadersOutForItsTime", true, R"(
        read a:1; write w:1 mark alive=600 => busy; read b:1 => busy 1..600; renew a:1 => 1
        ! HSET $fence mark 1000_w:1; read b:1 => token new)"},
      {"Mark_GoesWithItsWriter", true, R"(
        read a:1; write w:1 mark alive=60000; write w:2 mark alive=60000; release w:2 leave; read b:1 => busy
        release w:1 leave; read b:1 => token new; write w:1 mark alive=60000; release a:1; release b:1
        write w:1 mark => token new; release w:1; read b:2 => token new)"},

      // --- Semaphores ------------------------------------------------------------------------------------------------
      {"Permits_AreNeverExceeded", true, R"(
        take 2 a:1 => token new; take 2 b:1 => token new; take 2 c:1 => busy; take 2 a:1 => token same
        release a:1; take 2 c:1 => token new; take 2 a:2 => busy)"},
      // Hazard: readers with one expiry, released lost permits: a deadline each
      {"ReleaseOfALostPermit_FreesNothing", true, R"(
        take 1 a:1; pass a:1 30000; release a:1 => -1; take 1 a:2; pass a:2 30000; take 1 b:1 => token new
        release a:2 => -1; inside => b:1)"},
      // a:3 helps the one before it.
      {"Permits_GoToWaitersInOrder", true, R"(
        listen a; take 2 x:1; take 2 x:2; take 2 a:1 queue => busy; take 2 a:2 queue => busy; take 2 a:3 queue => busy
        take 2 y:1 => busy; release x:1; inside => a:1 x:2; take 2 y:1 => busy; pass x:2 30000
        take 2 a:3 queue => busy; inside => a:1 a:2; grant a => a:1; grant a => a:2)"},
      // The second time it is the turn of the one who waits.
      {"OtherNumberOfPermits_IsRefusedWhileHeldOrAwaited", true, R"(
        listen a; take 1 x:1; take 2 y:1 queue => permits 1; take 1 a:1 queue; pass x:1 30000
        take 2 y:1 queue => permits 1; inside => a:1; release a:1 leave; waiters => 0
        take 2 y:1 => token new; take 2 y:2 => token new)"},
      // Or nobody finds out that a:1 does not come.
      {"RefusedAcquire_TellsTheNextToWatchWhomItLetIn", true, R"(
        listen a; listen b; take 1 x:1; take 1 a:1 queue; take 1 b:1 queue; pass x:1 30000
        take 2 y:1 => permits 1; inside => a:1; hear b => b:1 *)"},
      // No refusal: there is more to do.
      {"FreePermits_AreNotRefusedForDeadWaiters", true, R"(
        listen s; take 1 x:1
        3* take 1 s:# queue
        release x:1; inside => s:0; pass s:0 1000; take 2 y:1 => busy -2 -1; take 2 y:1 => token new)"},

      // --- Crowds of those who share ---------------------------------------------------------------------------------
      // Hazard: readers enter one by one, tries jump the queue, dead writers block
      {"CrowdOfReaders_EntersInBoundedSteps", true, R"(
        listen a; write x:1
        150* read a:# queue
        ! CONFIG RESETSTAT; release x:1 => 1 * 1; ! ZCARD $lock => 64; published => <=65
        read a:0 queue; ! ZCARD $lock => 128; release x:1; ! ZCARD $lock => 150; waiters => 0)"},
      {"DeadClientsWaitersForPermits_AreAskedOnceAndGo", true, R"(
        listen a; take 1 x:1
        300* take 1 gone:# queue
        take 1 a:1 queue; ! CONFIG RESETSTAT; release x:1; inside => a:1; published => <=3; ! ZCARD $alive => 1)"},
      {"UnconfirmedPermit_CostsTheClientAllItsPlaces", true, R"(
        listen s; listen a; take 2 x:1; take 2 x:2
        5* take 2 s:# queue
        take 2 a:1 queue; release x:1; inside => s:0 x:2; pass s:0 1000
        3* take 2 a:1 queue
        inside => a:1 x:2; waiters => 0)"},
      {"NextWaiter_IsToldWhenTheFirstLeaseEnds", true, R"(
        listen a; listen b; take 1 x:1; take 1 a:1 queue; take 1 b:1 queue; release x:1; grant a => a:1
        hear b => b:1 901..1002)"},

      // --- Who waits with others -------------------------------------------------------------------------------------
      {"WaiterAtItsTurn_LetsInNoMoreThanFit", true, R"(
        take 2 a:1; take 2 b:1 try lease=1000; take 2 c:1 blind; take 2 d:1 blind; pass b:1 1000
        take 2 c:1 blind => token new; inside => a:1 c:1; waiters => 1)"},
      {"WriterAtItsTurn_IsAlone", true, R"(
        read a:1 try lease=1000; write b:1 blind; read c:1 blind; pass a:1 1000; write b:1 blind => token new
        inside => b:1)"},
      {"RepeatedRequest_JoinsOnce", true, R"(
        write a:1; write b:1 queue => busy * 0 1; write b:1 queue => busy * 0 0)"},
      {"Try_IsToldWhenTheFirstLeaseEnds", true, R"(
        read a:1 try lease=60000; read b:1 try lease=30000; write c:1 => busy ~30000)"},
      // Else b:1 looks at the end of the time to confirm.
      {"LeaseShorterThanTheTimeToConfirm_NextWaiterIsTold", true, R"(
        listen b; take 1 x:1; take 1 a:1 blind; take 1 b:1 queue; release x:1; inside => a:1; ! CONFIG RESETSTAT
        take 1 a:1 blind => token new; published => 0; take 1 a:1 blind lease=500 => token same; published => 1)"},
      {"WaitingWriter_IsAskedWhetherItLivesForReadersOnly", true, R"(
        listen a; read x:1; write a:1 queue; ! CONFIG RESETSTAT; write b:1 => busy; write c:1 blind => busy
        published => 0; read d:1 => busy; published => 1)"},

      // --- What is there already -------------------------------------------------------------------------------------
      {"KeysOfAnotherKind_AreRefusedAndNotTouched", true, R"(
        acquire c:1; read a:1 queue => -WRONGTYPE; take 2 a:1 => -WRONGTYPE; waiters => 0
        release c:1 => -WRONGTYPE; holder => c:1; ! FLUSHALL
        ! ZADD $lock 1 somebody's 4000000000000 data; read a:1 queue => -WRONGTYPE; take 2 a:1 => -WRONGTYPE
        waiters => 0; release a:1 leave => -1; ! ZCARD $lock => 2; ! FLUSHALL
        read c:1; take 2 a:1 => -WRONGTYPE; acquire c:1 => -WRONGTYPE; inside => c:1; ! FLUSHALL
        take 2 c:1; read a:1 => -WRONGTYPE; write a:1 => -WRONGTYPE)"},
      {"SharedKeys_ExpireOrGo", true, R"(
        read a:1 try lease=5000; write b:1 queue; ! PTTL $lock => 5001..35000; ! PTTL $queue => >0
        ! PTTL $alive => >0; ! PTTL $fence => >0; release b:1 leave; release a:1; ! EXISTS $lock $queue $alive => 0)"},
      // Holders that nobody removed one by one have left their fields: then these are "last", "permits" and c:1.
      {"LockTakenAnew_EmptiesTheRecord", true, R"(
        read a:1; read b:1; ! DEL $lock; read c:1; ! HLEN $fence => 3)"},
      {"ForgetOfShared_TakesOnlyLongUnusedLocks", true, R"(
        forget 0 => 0; read a:1; forget 0 => 0; write b:1 blind; pass a:1 30000; forget 0 => 0
        2* release b:1 leave
        forget 60000000 => 0; forget 0 => 1; ! EXISTS $lock $queue $alive $fence => 0)"},
      {"NoMemory_SharedAcquireFailsAndReleaseLetsOthersIn", true, R"(
        listen a; write x:1; read a:1 queue; ! CONFIG SET maxmemory 1; read y:1 queue => -OOM; release x:1 => 1
        inside => a:1)"},
  };
  return rules;
}

}  // namespace dlock::redis
