package wallaby;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Sub-plans of Spark's own plans that run in the TaskManagers, whose rows Spark's tasks then read.
 *
 * A planner strategy offers every plan that Spark is about to plan to Python, once, as a whole. Python answers with the
 * sub-plans that run here. In their places stand the nodes of KeptPlans.java; KeptRdds.java says how long their rows stay.
 *
 * Spark compiles these files in the driver with Janino; see PlanWriter.java for what that means.
 */
public class SparkAbove extends SparkStrategy {
    private static final String ENABLED = "spark.wallaby.enabled";
    private static final String BELOW = "spark.wallaby.below";
    /** A local property: what this thread plans is Spark's alone. */
    private static final String BYPASS = "spark.wallaby.bypass";
    /** A plan over tables with fewer bytes than this is not offered. */
    private static final double LITTLE_BYTES = 4 << 20;

    private final KeptPlans plans;
    /** Answers with the sub-plans of a plan that run here. */
    private Function offer;
    private final TreeNodeTag seen = new TreeNodeTag("wallaby.seen");
    private final TreeNodeTag taken = new TreeNodeTag("wallaby.taken");
    private final KeptPlans.Strategy kept = new KeptPlans.Strategy();
    /** The sessions that were enabled, and those that were not to be although others are. */
    private final Set installed = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));
    private final Set excepted = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));
    private boolean inNewSessions = false;

    public SparkAbove(KeptPlans plans) {
        this.plans = plans;
    }

    public void connect(Function offer) {
        this.offer = offer;
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

    // --- planning ------------------------------------------------------------------------------------

    public Seq apply(LogicalPlan plan) {
        Seq none = (Seq) Nil$.MODULE$;
        if (plan instanceof KeptPlans.Relation) {
            return kept.apply(plan);
        }
        if (plans.rdds.isClosed()) {
            return none;
        }
        Seq there = node(plan);
        if (there != null) {
            return there;
        }
        if (plan.getTagValue(seen).isDefined()) {
            return none;
        }
        mark(plan);
        if (!hasWork(plan) || isBegun(plan) || !isWanted() || !readsMuch(plan)) {
            return none;
        }
        List chosen = (List) offer.apply(plan);
        List<KeptPlans.Run> runs = new ArrayList<KeptPlans.Run>();
        for (int at = 0; chosen != null && at < chosen.size(); at++) {
            Object[] each = ((List) chosen.get(at)).toArray();
            LogicalPlan part = part(plan, (String) each[0]);
            KeptPlans.Run run = equal(runs, part);
            if (run == null) {
                run = new KeptPlans.Run(plans, part, (String) each[1], (String) each[2]);
                runs.add(run);
            }
            part.setTagValue(taken, run);
        }
        there = node(plan);
        return there != null ? there : none;
    }

    /**
     * The node of a plan that was taken; null if it was not. Spark plans a limit right below the root of a query together
     * with the root, and would not ask for it alone.
     */
    private Seq node(LogicalPlan plan) {
        LogicalPlan top = plan instanceof ReturnAnswer ? (LogicalPlan) plan.children().head() : plan;
        Option known = top.getTagValue(taken);
        if (!known.isDefined()) {
            return null;
        }
        KeptPlans.Run run = (KeptPlans.Run) known.get();
        return run.plan.sameResult(top) ? KeptPlans.one(new KeptPlans.Exec(run, top.output())) : null;
    }

    /**
     * Python is not asked about a plan that reads little: whatever is done with so few rows takes less time than a query
     * takes to begin and end. With `always` it is asked.
     */
    private static boolean readsMuch(LogicalPlan plan) {
        SparkSession session = (SparkSession) SparkSession.active();
        return "always".equalsIgnoreCase(session.sessionState().conf().getConfString(BELOW, "auto"))
            || bytesBelow(plan) >= LITTLE_BYTES;
    }

    /** The same about a part of a plan. */
    public boolean readsMuch(LogicalPlan plan, String path) {
        return readsMuch(part(plan, path));
    }

    /** The bytes that the tables of a plan have, as far as Spark knows; of pairs of rows where each meets each. */
    private static double bytesBelow(LogicalPlan plan) {
        if (plan.children().isEmpty()) {
            return plan.stats().sizeInBytes().toDouble();
        }
        boolean pairs = plan instanceof Join && ExtractEquiJoinKeys$.MODULE$.unapply((Join) plan).isEmpty();
        double bytes = pairs ? 1 : 0;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            double below = bytesBelow((LogicalPlan) children.next());
            bytes = pairs ? bytes * below : bytes + below;
        }
        return bytes;
    }

    private boolean isWanted() {
        SparkSession session = (SparkSession) SparkSession.active();
        String bypass = plans.rdds.context().getLocalProperty(BYPASS);
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

    /** A plan that Spark adapts while it runs was offered as a whole before it began; what is left of it is not. */
    private static boolean isBegun(LogicalPlan plan) {
        if (plan instanceof LogicalQueryStage) {
            return true;
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (isBegun((LogicalPlan) children.next())) {
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

    private static KeptPlans.Run equal(List<KeptPlans.Run> runs, LogicalPlan part) {
        for (int at = 0; at < runs.size(); at++) {
            KeptPlans.Run run = (KeptPlans.Run) runs.get(at);
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
        KeptPlans.Run run = new KeptPlans.Run(plans, query.queryExecution().optimizedPlan(), id, text);
        run.stays = true;
        return Dataset.ofRows(session, new KeptPlans.Relation(run, KeptPlans.fresh(query.queryExecution().analyzed().output())));
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
