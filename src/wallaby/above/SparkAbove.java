package wallaby;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.DAGScheduler;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import scala.runtime.AbstractFunction1;

/**
 * Sub-plans of Spark's own plans that run in the TaskManagers, whose rows Spark's tasks then read.
 *
 * A planner strategy offers every plan that Spark is about to plan to Python, once, as a whole. Python answers with the
 * sub-plans that run here. In their places stand nodes of a class of ours, which exists in the driver only: when such a
 * node is executed, Python runs the sub-plan and answers with a plan of Spark's own classes that reads its rows. So
 * nothing runs while a query is planned or explained, and executors need no class of ours.
 *
 * The rows stay in the TaskManagers until nobody can read them any more, as the files of a shuffle of Spark's do: until
 * the RDD that reads them is gone, and with it the plan that was executed, or the cached table. The JVM finds that out when
 * it collects garbage, and is asked to some time after an execution has ended.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class SparkAbove extends SparkStrategy {
    private static final String EXECUTION = "spark.sql.execution.id";
    private static final String ENABLED = "spark.wallaby.enabled";
    private static final String BELOW = "spark.wallaby.below";
    /** A local property: what this thread plans is Spark's alone. */
    private static final String BYPASS = "spark.wallaby.bypass";
    private static final long SWEEP_MS = 1000;
    /** After so long the JVM is asked to find out whether anybody has an RDD that no execution reads; then ever later. */
    private static final long COLLECT_MS = 30000;
    private static final long COLLECT_LATER = 4;
    /** Of so many bytes of one execution it is asked soon. */
    private static final long MUCH_BYTES = 256L << 20;
    private static final long SOON_MS = 2000;

    private final SparkContext context;
    private final TreeNodeTag seen = new TreeNodeTag("wallaby.seen");
    private final TreeNodeTag taken = new TreeNodeTag("wallaby.taken");
    private final KeptStrategy kept = new KeptStrategy();
    /** The sessions that were enabled, and those that were not to be although others are. */
    private final Set installed = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));
    private final Set excepted = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));
    private final Listener listener;
    private final Cleaner cleaner = Cleaner.create();
    private final LinkedBlockingQueue<String> gone = new LinkedBlockingQueue<String>();
    private final Map<String, Held> helds = Collections.synchronizedMap(new HashMap<String, Held>());
    /** The runs whose rows were released by name, and the rows of runs that stay, by run. */
    private final Set<String> forgotten = Collections.synchronizedSet(new HashSet<String>());
    private final Map<String, Staying> staying = Collections.synchronizedMap(new HashMap<String, Staying>());
    /** Executions that have ended, until what their late jobs left behind is gone too. */
    private final Set<String> over = Collections.synchronizedSet(new HashSet<String>());
    private volatile long collectAt = Long.MAX_VALUE;
    /** Answers with the sub-plans of a plan that run here, and starts one of them. */
    private Function offer;
    private Function start;
    private volatile boolean closed = false;
    private boolean inNewSessions = false;

    public SparkAbove(SparkContext context) {
        this.context = context;
        listener = new Listener(this);
        context.addSparkListener(listener);
    }

    public void connect(Function offer, Function start) {
        this.offer = offer;
        this.start = start;
    }

    /** Offer what this session plans from now on, and what sessions plan that are copied from it. */
    public void install(SparkSession session) {
        installed.add(session);
        excepted.remove(session);
        install(session, this);
    }

    /** Let this session plan DataFrames over rows that stay. Nothing else of it is looked at. */
    public void installForKept(SparkSession session) {
        install(session, kept);
    }

    private static void install(SparkSession session, SparkStrategy strategy) {
        Seq there = session.experimental().extraStrategies();
        if (!there.contains(strategy)) {
            session.experimental().extraStrategies_$eq((Seq) there.prepended(strategy));
        }
    }

    /** New sessions of the application have the strategy too. */
    public synchronized void installInNewSessions(SparkSession session) {
        if (!inNewSessions) {
            inNewSessions = true;
            session.extensions().injectPlannerStrategy(new Build(this));
        }
    }

    /** Offer nothing of this session any more, and nothing at all once no session is left. */
    public void uninstall(SparkSession session) {
        installed.remove(session);
        excepted.add(session);
        session.experimental().extraStrategies_$eq(
            (Seq) session.experimental().extraStrategies().filterNot(new IsSame(this)));
    }

    public void close() {
        closed = true;
        context.removeSparkListener(listener);
        gone.add("");
    }

    // --- planning ------------------------------------------------------------------------------------

    public Seq apply(LogicalPlan plan) {
        Seq none = (Seq) Nil$.MODULE$;
        if (plan instanceof KeptRelation) {
            return kept.apply(plan);
        }
        if (closed || offer == null) {
            return none;
        }
        Option known = plan.getTagValue(taken);
        if (known.isDefined()) {
            Run run = (Run) known.get();
            return run.plan.sameResult(plan) ? one(new KeptExec(run, plan.output())) : none;
        }
        if (plan.getTagValue(seen).isDefined()) {
            return none;
        }
        mark(plan);
        if (!hasWork(plan) || !isWanted()) {
            return none;
        }
        List chosen = (List) offer.apply(plan);
        List<Run> runs = new ArrayList<Run>();
        for (int at = 0; chosen != null && at < chosen.size(); at++) {
            Object[] each = ((List) chosen.get(at)).toArray();
            LogicalPlan part = part(plan, (String) each[0]);
            Run run = equal(runs, part);
            if (run == null) {
                run = new Run(this, part, (String) each[1], (String) each[2]);
                runs.add(run);
            }
            part.setTagValue(taken, run);
        }
        known = plan.getTagValue(taken);
        return known.isDefined() ? one(new KeptExec((Run) known.get(), plan.output())) : none;
    }

    static Seq one(Object plan) {
        return (Seq) Nil$.MODULE$.prepended(plan);
    }

    private boolean isWanted() {
        SparkSession session = (SparkSession) SparkSession.active();
        String bypass = context.getLocalProperty(BYPASS);
        return !installed.isEmpty() && !excepted.contains(session) && !"true".equals(bypass)
            && !"false".equalsIgnoreCase(session.sessionState().conf().getConfString(ENABLED, "true"))
            && !"never".equalsIgnoreCase(session.sessionState().conf().getConfString(BELOW, "auto"));
    }

    /** What cannot be worth the hand-over is not offered: there is nothing in it but rows on their way. */
    private static boolean hasWork(LogicalPlan plan) {
        if (plan.isStreaming()) {
            return false;
        }
        if (plan instanceof Aggregate || plan instanceof Join || plan instanceof Sort || plan instanceof Window) {
            return true;
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (hasWork((LogicalPlan) children.next())) {
                return true;
            }
        }
        return false;
    }

    private void mark(LogicalPlan plan) {
        plan.setTagValue(seen, Boolean.TRUE);
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            mark((LogicalPlan) children.next());
        }
    }

    private static LogicalPlan part(LogicalPlan plan, String path) {
        String[] steps = path.isEmpty() ? new String[0] : path.split("\\.");
        for (int i = 0; i < steps.length; i++) {
            plan = (LogicalPlan) plan.children().apply(Integer.parseInt(steps[i]));
        }
        return plan;
    }

    private static Run equal(List<Run> runs, LogicalPlan part) {
        for (int at = 0; at < runs.size(); at++) {
            Run run = (Run) runs.get(at);
            if (run.plan.sameResult(part)) {
                return run;
            }
        }
        return null;
    }

    /** A part of a plan as a query of its own, which is never offered again. */
    public Object query(LogicalPlan plan, String path) {
        return Dataset.ofRows((SparkSession) SparkSession.active(), (LogicalPlan) part(plan, path).clone());
    }

    /**
     * The same query in a session of its own, in which plans are not adapted while they run. A part is executed on a thread
     * of Spark's pool for stages of adapted plans; a query that waits for such a thread there may wait for ever.
     */
    public Object unadapted(Dataset query) {
        SparkSession session = query.sparkSession().cloneSession();
        session.conf().set("spark.sql.adaptive.enabled", "false");
        return Dataset.ofRows(session, (LogicalPlan) query.queryExecution().logical().clone());
    }

    /** A DataFrame over rows that stay: of the schema of a query, started by its id. */
    public Object dataframe(SparkSession session, Dataset query, String id, String text) {
        Run run = new Run(this, query.queryExecution().optimizedPlan(), id, text);
        run.stays = true;
        return Dataset.ofRows(session, new KeptRelation(run, fresh(query.queryExecution().analyzed().output())));
    }

    static Seq fresh(Seq output) {
        List made = new ArrayList();
        scala.collection.Iterator columns = output.iterator();
        while (columns.hasNext()) {
            made.add(((Attribute) columns.next()).newInstance());
        }
        return scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq();
    }

    // --- results that stay ---------------------------------------------------------------------------

    private void hold(RDD rdd, String kept, long bytes) {
        String execution = context.getLocalProperty(EXECUTION);
        helds.put(kept, new Held(execution, bytes));
        cleaner.register(rdd, new Forget(this, kept));
    }

    /** An execution has ended: much that it alone could read should go soon, the rest may wait. */
    private void ended(String execution) {
        long now = System.currentTimeMillis();
        long bytes = 0;
        if (!helds.isEmpty() || !staying.isEmpty()) {
            over.add(execution);
        }
        Iterator each = new ArrayList(helds.values()).iterator();
        while (each.hasNext()) {
            Held held = (Held) each.next();
            if (execution.equals(held.execution)) {
                held.execution = null;
                held.collectAt = now + COLLECT_MS;
                bytes += held.bytes;
            }
        }
        if (bytes >= MUCH_BYTES) {
            collectAt = now + SOON_MS;
        }
    }

    /** Ask the JVM, now and then, whether anybody has the RDDs that no execution reads. */
    private void sweep() {
        long now = System.currentTimeMillis();
        boolean due = now > collectAt;
        Iterator each = new ArrayList(helds.values()).iterator();
        while (each.hasNext()) {
            Held held = (Held) each.next();
            if (held.execution == null && now > held.collectAt) {
                due = true;
                held.collectAfter *= COLLECT_LATER;
                held.collectAt = now + held.collectAfter;
            }
        }
        if (due) {
            collectAt = Long.MAX_VALUE;
            collect();
        }
    }

    /**
     * Spark remembers the jobs of an execution until it ends. Those that come later, of an iterator that outlives its
     * execution, it would remember for ever, and all RDDs below them.
     */
    private void forgetLateJobs() {
        Map remembered;
        try {
            remembered = (Map) DAGScheduler.class.getMethod("activeQueryToJobs", new Class[0])
                .invoke(context.dagScheduler(), new Object[0]);
        } catch (ReflectiveOperationException none) {
            return;  // another version of Spark remembers nothing
        }
        Set<String> running = new HashSet<String>();
        scala.collection.Iterator active = context.dagScheduler().activeJobs().iterator();
        while (active.hasNext()) {
            java.util.Properties properties = ((ActiveJob) active.next()).properties();
            String execution = properties == null ? null : properties.getProperty(EXECUTION);
            if (execution != null) {
                running.add(execution);
            }
        }
        Iterator each = new ArrayList(over).iterator();
        while (each.hasNext()) {
            String execution = (String) each.next();
            if (!running.contains(execution)) {
                remembered.remove(Long.valueOf(execution));
                over.remove(execution);
            }
        }
    }

    /** For whoever cannot wait: look now whether anybody has the RDDs that no execution reads. */
    public void collect() {
        forgetLateJobs();
        System.gc();
    }

    private void release(String kept) {
        if (helds.remove(kept) != null) {
            gone.add(kept);
        }
    }

    /** The rows of a DataFrame that stayed until now are not wanted any more: by the id of its run. */
    public void forget(String id) {
        forgotten.add(id);
        Staying found = (Staying) staying.remove(id);
        if (found != null) {
            gone.add(found.kept);
        }
    }

    /** Nobody can execute a run any more. Whoever has its RDD can still read its rows. */
    private void over(String id) {
        gone.add(id);
        forgotten.remove(id);
        Staying found = (Staying) staying.remove(id);
        RDD rdd = found == null ? null : (RDD) found.rdd.get();
        if (rdd != null) {
            hold(rdd, found.kept, 0);
        } else if (found != null) {
            gone.add(found.kept);
        }
    }

    /** The next rows that nobody can read any more; null if there are none for so long, empty at the end. */
    public String next(long milliseconds) throws InterruptedException {
        long until = System.currentTimeMillis() + milliseconds;
        while (true) {
            long left = until - System.currentTimeMillis();
            if (left <= 0) {
                return null;
            }
            String found = (String) gone.poll(Math.min(left, SWEEP_MS), TimeUnit.MILLISECONDS);
            if (found != null) {
                return found;
            }
            sweep();
        }
    }

    /** Plans DataFrames over rows that stay. */
    public static class KeptStrategy extends SparkStrategy {
        public Seq apply(LogicalPlan plan) {
            if (plan instanceof KeptRelation) {
                return one(new KeptExec(((KeptRelation) plan).run, plan.output()));
            }
            return (Seq) Nil$.MODULE$;
        }
    }

    /** Rows that stay for the execution that reads them, and for whoever has the RDD. */
    public static class Held {
        final long bytes;
        volatile String execution;
        long collectAfter = COLLECT_MS;
        volatile long collectAt = System.currentTimeMillis() + COLLECT_MS;

        public Held(String execution, long bytes) {
            this.execution = execution;
            this.bytes = bytes;
        }
    }

    /** Rows that stay until they are released by name. */
    public static class Staying {
        final String kept;
        final WeakReference rdd;

        public Staying(String kept, RDD rdd) {
            this.kept = kept;
            this.rdd = new WeakReference(rdd);
        }
    }

    /** Nobody has the run any more. */
    public static class Over implements Runnable {
        private final SparkAbove above;
        private final String id;

        public Over(SparkAbove above, String id) {
            this.above = above;
            this.id = id;
        }

        public void run() {
            above.over(id);
        }
    }

    /** Nobody has the RDD any more. */
    public static class Forget implements Runnable {
        private final SparkAbove above;
        private final String kept;

        public Forget(SparkAbove above, String kept) {
            this.above = above;
            this.kept = kept;
        }

        public void run() {
            above.release(kept);
        }
    }

    public static class Listener extends SparkListener {
        private final SparkAbove above;

        public Listener(SparkAbove above) {
            this.above = above;
        }

        public void onOtherEvent(SparkListenerEvent event) {
            if (event instanceof SparkListenerSQLExecutionEnd) {
                above.ended(String.valueOf(((SparkListenerSQLExecutionEnd) event).executionId()));
            }
        }
    }

    // --- one sub-plan --------------------------------------------------------------------------------

    /** A sub-plan that runs here: once, however many nodes stand for it and however often they are executed. */
    public static class Run {
        final SparkAbove above;
        final LogicalPlan plan;
        final String id;
        final String text;
        /** Do its rows stay until they are released by name? */
        boolean stays = false;
        volatile long rows = -1;
        volatile long bytes = -1;
        private WeakReference rdd = new WeakReference(null);
        /** Rows that stay are read again by whoever executes the run again. */
        private RDD held = null;
        private String kept = null;
        private Object[] figures = null;

        public Run(SparkAbove above, LogicalPlan plan, String id, String text) {
            this.above = above;
            this.plan = plan;
            this.id = id;
            this.text = text;
            above.cleaner.register(this, new Over(above, id));
        }

        public LogicalPlan plan() {
            return plan;
        }

        public String id() {
            return id;
        }

        synchronized RDD execute(KeptExec node) {
            if (above.forgotten.contains(id)) {
                throw new WallabyException("WALLABY_KEPT_RESULT",
                    "[WALLABY_KEPT_RESULT] The rows of this DataFrame were released by unpersist. Make the DataFrame anew.");
            }
            RDD there = (RDD) rdd.get();
            if (above.closed && (there == null || kept != null)) {
                throw new WallabyException("WALLABY_KEPT_RESULT",
                    "[WALLABY_KEPT_RESULT] The engine that ran a part of this query is closed. Make the DataFrame anew.");
            }
            if (there == null) {
                there = begin();
            }
            node.tell(figures);
            return there;
        }

        private RDD begin() {
            Object[] answer = ((List) above.start.apply(id)).toArray();
            if (answer[0] instanceof String) {
                throw new WallabyException((String) answer[0], (String) answer[1]);
            }
            RDD made = ((SparkPlan) answer[0]).execute();
            kept = (String) answer[1];
            figures = answer;
            if (kept != null) {
                rows = ((Number) answer[2]).longValue();
                bytes = ((Number) answer[3]).longValue();
                if (stays) {
                    held = made;
                    above.staying.put(id, new Staying(kept, made));
                } else {
                    above.hold(made, kept, bytes);
                }
            }
            rdd = new WeakReference(made);
            return made;
        }
    }

    /** An error of ours, with its condition. */
    public static class WallabyException extends RuntimeException implements SparkThrowable {
        private final String condition;

        public WallabyException(String condition, String message) {
            super(message);
            this.condition = condition;
        }

        public String getCondition() {
            return condition;
        }

        public String getErrorClass() {
            return condition;
        }
    }

    /** The node of a physical plan that stands for a sub-plan. */
    public static class KeptExec extends SparkPlan {
        private final transient Run run;
        private final Seq output;
        private transient scala.collection.immutable.Map metrics = null;

        public KeptExec(Run run, Seq output) {
            this.run = run;
            this.output = output;
        }

        public Seq output() {
            return output;
        }

        public Seq children() {
            return (Seq) Nil$.MODULE$;
        }

        public String nodeName() {
            return "Wallaby";
        }

        public String simpleString(int maxFields) {
            return "Wallaby " + run.text;
        }

        public scala.collection.immutable.Map metrics() {
            if (metrics == null) {
                SparkContext context = run.above.context;
                scala.collection.immutable.Map made = (scala.collection.immutable.Map) Map$.MODULE$.empty();
                made = with(made, "numOutputRows", SQLMetrics$.MODULE$.createMetric(context, "number of output rows"));
                made = with(made, "dataSize", SQLMetrics$.MODULE$.createSizeMetric(context, "data size", -1L));
                made = with(made, "time", SQLMetrics$.MODULE$.createTimingMetric(context, "time in the TaskManagers", -1L));
                made = with(made, "losses", SQLMetrics$.MODULE$.createMetric(context, "lost TaskManagers recovered from"));
                metrics = made;
            }
            return metrics;
        }

        private static scala.collection.immutable.Map with(
            scala.collection.immutable.Map metrics, String name, SQLMetric metric) {
            return (scala.collection.immutable.Map) metrics.updated(name, metric);
        }

        void tell(Object[] figures) {
            String execution = run.above.context.getLocalProperty(EXECUTION);
            if (figures == null || figures[1] == null || execution == null || ((Number) figures[2]).longValue() < 0) {
                return;
            }
            String[] names = new String[] {"numOutputRows", "dataSize", "time", "losses"};
            List told = new ArrayList();
            for (int at = 0; at < names.length; at++) {
                SQLMetric metric = (SQLMetric) metrics().apply(names[at]);
                metric.set(((Number) figures[2 + at]).longValue());
                told.add(metric);
            }
            SQLMetrics$.MODULE$.postDriverMetricUpdates(
                run.above.context, execution, scala.jdk.javaapi.CollectionConverters.asScala(told).toSeq());
        }

        public RDD doExecute() {
            return run.execute(this);
        }

        /** Some nodes of Spark's travel to executors with all that is below them, for their columns alone. */
        protected Object writeReplace() {
            return new ProjectExec(output, new UnionExec((Seq) Nil$.MODULE$));
        }

        public TreeNode withNewChildrenInternal(IndexedSeq children) {
            return this;
        }

        public QueryPlan doCanonicalize() {
            return new KeptExec(run, (Seq) Nil$.MODULE$);
        }

        public int productArity() {
            return 2;
        }

        public Object productElement(int n) {
            return n == 0 ? (Object) run : (Object) output;
        }

        public boolean canEqual(Object other) {
            return other instanceof KeptExec;
        }

        public boolean equals(Object other) {
            return other instanceof KeptExec && ((KeptExec) other).run == run && ((KeptExec) other).output.equals(output);
        }

        public int hashCode() {
            return System.identityHashCode(run);
        }
    }

    /** The rows of a query that stay until they are released, as a table of Spark's. */
    public static class KeptRelation extends LogicalPlan implements LeafNode, MultiInstanceRelation {
        final Run run;
        private final Seq output;

        public KeptRelation(Run run, Seq output) {
            this.run = run;
            this.output = output;
        }

        public Seq output() {
            return output;
        }

        public Seq children() {
            return (Seq) Nil$.MODULE$;
        }

        public TreeNode withNewChildrenInternal(IndexedSeq children) {
            return this;
        }

        public LogicalPlan newInstance() {
            return new KeptRelation(run, fresh(output));
        }

        public Statistics computeStats() {
            if (run.bytes < 0) {
                return run.plan.stats();
            }
            return new Statistics(
                new BigInt(BigInteger.valueOf(Math.max(run.bytes, 1))), Option.apply(new BigInt(BigInteger.valueOf(run.rows))),
                run.plan.stats().attributeStats(), false);
        }

        public String simpleString(int maxFields) {
            return "Wallaby " + run.text;
        }

        public int productArity() {
            return 2;
        }

        public Object productElement(int n) {
            return n == 0 ? (Object) run : (Object) output;
        }

        public boolean canEqual(Object other) {
            return other instanceof KeptRelation;
        }

        public boolean equals(Object other) {
            return other instanceof KeptRelation && ((KeptRelation) other).run == run
                && ((KeptRelation) other).output.equals(output);
        }

        public int hashCode() {
            return System.identityHashCode(run);
        }

        public QueryPlan doCanonicalize() {
            return new KeptRelation(run, (Seq) Nil$.MODULE$);
        }
    }

    /** Gives new sessions the strategy. */
    public static class Build extends AbstractFunction1 {
        private final SparkAbove above;

        public Build(SparkAbove above) {
            this.above = above;
        }

        public Object apply(Object session) {
            return above;
        }
    }

    public static class IsSame extends AbstractFunction1 {
        private final Object what;

        public IsSame(Object what) {
            this.what = what;
        }

        public Object apply(Object other) {
            return Boolean.valueOf(other == what);
        }
    }
}
